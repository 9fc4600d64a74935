package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"assay"
)

func (a *app) reportCommand() *cobra.Command {
	var dir, release string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write tables and pictures about the corpus: labels, agreement, panel, controls, stability, strata, effects, cost",
		Example: `  assay report
  assay report --release release/v1.0.0 --to /tmp/report`,
		Long: help(`Write a folder of tables (Markdown and CSV) and pictures (SVG and PNG) about what is built and fresh, about the
labels that imported tables published, and about what all model calls cost; index.html holds all of it and loads
nothing from anywhere. It asks nobody, and the same workspace gives the same bytes. A section that has nothing to
tell says which setting would make it.

With --release the files of one release are read instead, and no workspace is needed; what they do not hold is named.`,
			statusError, statusUsage, statusLocked),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if release != "" {
				at := dir
				if at == "" {
					at = filepath.Join(a.dir, assay.ReportDir)
				}
				files, err := assay.WriteReportOfRelease(cmd.Context(), release, at)
				if err != nil {
					return err
				}
				return a.printReport(at, files)
			}
			w, err := a.open(cmd.Context(), assay.OpenOptions{Offline: true})
			if err != nil {
				return err
			}
			defer closing(w.Close, &err)
			at, files, err := w.WriteReport(cmd.Context(), dir)
			if err != nil {
				return err
			}
			return a.printReport(at, files)
		},
	}
	cmd.Flags().StringVar(&dir, "to", "", "the folder; one that holds a report is replaced (default: report in the workspace)")
	cmd.Flags().StringVar(&release, "release", "", "tell of the release in this folder, from its files alone")
	return cmd
}

func (a *app) printReport(at string, files []string) error {
	if a.json {
		return a.print(map[string]any{"dir": at, "files": files}, nil)
	}
	fmt.Fprintf(a.out, "report %s: %d files; open %s/index.html\n", at, len(files), at)
	return nil
}
