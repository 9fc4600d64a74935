package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"assay"
)

func (a *app) reportCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write tables and pictures about the corpus: labels, agreement, controls, effects, cost",
		Example: `  assay report
  assay report --to /tmp/report`,
		Long: help(`Write a folder of tables (Markdown and CSV) and pictures (SVG and PNG) about what is built and fresh, about the
labels that imported tables published, and about what all model calls cost; index.html holds all of it and loads
nothing from anywhere. It asks nobody, and the same workspace gives the same bytes.`,
			statusError, statusUsage, statusLocked),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			w, err := a.open(cmd.Context(), assay.OpenOptions{Offline: true})
			if err != nil {
				return err
			}
			defer closing(w.Close, &err)
			at, files, err := w.WriteReport(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if a.json {
				return a.print(map[string]any{"dir": at, "files": files}, nil)
			}
			fmt.Fprintf(a.out, "report %s: %d files; open %s/index.html\n", at, len(files), at)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "to", "", "the folder; one that holds a report is replaced (default: report in the workspace)")
	return cmd
}
