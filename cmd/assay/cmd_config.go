package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"assay"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings and where they come from",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var origin bool
	show := &cobra.Command{
		Use:     "show",
		Short:   "Print every setting",
		Example: "  assay config show --origin",
		Long: help(`Print every setting of the workspace. Values come from the profile, then assay.yaml, then ASSAY_<KEY>
variables (ASSAY_RUNTIME_WORKERS=4), then flags. Keys of endpoints are named by their variable, never shown.`,
			statusError, statusUsage),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, settings, err := assay.LoadConfig(a.dir, a.environ)
			if err != nil {
				return err
			}
			return a.print(settings, func(w io.Writer) {
				t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				for _, s := range settings {
					if origin { // the value last: some are long
						fmt.Fprintf(t, "%s\t%s\t%s\n", s.Key, s.Origin, s.Value)
					} else {
						fmt.Fprintf(t, "%s\t%s\n", s.Key, s.Value)
					}
				}
				t.Flush()
			})
		},
	}
	show.Flags().BoolVar(&origin, "origin", false, "say where each value comes from")
	cmd.AddCommand(show)
	return cmd
}
