package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"assay"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  assay version --json",
		Long:    help("Print the version of the program, of Go, and the revision that it was built from.", statusUsage),
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": assay.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" || s.Key == "vcs.time" || s.Key == "vcs.modified" {
						v[s.Key] = s.Value
					}
				}
			}
			return a.print(v, func(w io.Writer) { fmt.Fprintf(w, "assay %s (%s)\n", v["version"], v["go"]) })
		},
	}
}
