package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"assay"
)

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list KIND",
		Short:   "List every site, table, dump, prompt, format, ... that this program knows",
		Example: "  assay list sites\n  assay list prompts --json",
		Long: help("List what is built in. Kinds: "+strings.Join(assay.CatalogKinds(), ", ")+`.
"Proven" says what a plugin was tried on: captured replies of the real thing, its documentation, or nothing yet.
Sites show the least time between two requests to a host, and what their pages tell of a claim (*: no claim without it), or of
a document where they rate nothing. In a workspace, they come with the last good run of each that the recipe has: the last
release of a run that asked its listings, or never.`,
			statusError, statusUsage),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			known, err := assay.Catalog(args[0])
			if err != nil {
				return usageError{err}
			}
			entries := make([]entry, len(known))
			for i, e := range known {
				entries[i].Entry = e
			}
			if args[0] == "sites" && exists(filepath.Join(a.dir, assay.ConfigName)) {
				if err := a.lastRuns(cmd.Context(), entries); err != nil {
					return err
				}
			}
			return a.print(entries, func(w io.Writer) {
				t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				for _, e := range entries {
					fmt.Fprintf(t, "%s\t%s\t%s\t", e.Name, e.Version, e.Proven)
					indent := "\t\t\t"
					if e.Delay != "" {
						fmt.Fprintf(t, "%s\t%s\t", e.Delay, e.Fields)
						indent += "\t\t"
					}
					fmt.Fprintf(t, "%s\n", e.Doc)
					for _, run := range e.Runs {
						fmt.Fprintf(t, "%s%s\n", indent, run)
					}
				}
				t.Flush()
			})
		},
	}
}

// An entry is a thing that is built in, and of a site what the workspace knows of it.
type entry struct {
	assay.Entry
	Runs []string `json:"runs,omitzero"`
}

// lastRuns adds to sites when the workspace released them last.
func (a *app) lastRuns(ctx context.Context, sites []entry) error {
	var states []assay.SourceState
	err := a.reading(ctx, func(r assay.Reader) (err error) {
		states, err = r.Sources(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for i, e := range sites {
		for _, s := range states {
			if s.Site == e.Name {
				sites[i].Runs = append(sites[i].Runs, s.Source+": "+s.Text())
			}
		}
	}
	return nil
}
