package main

import (
	"fmt"
	"io"
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
"Proven" says what a plugin was tried on: captured replies of the real thing, its documentation, or nothing yet.`,
			statusError, statusUsage),
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			entries, err := assay.Catalog(args[0])
			if err != nil {
				return usageError{err}
			}
			return a.print(entries, func(w io.Writer) {
				t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				for _, e := range entries {
					fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", e.Name, e.Version, e.Proven, e.Doc)
				}
				t.Flush()
			})
		},
	}
}
