package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"assay"
	"assay/output"
)

func (a *app) releaseCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:     "release",
		Short:   "Write what is fresh and live as a release",
		Example: "  assay release\n  assay release --as v1.0.0",
		Long: help(`Walk from the live references and write every fresh row as release/<12 hex digits of its content>, or under
--as. The folder appears whole or not at all. The same recipe over the same stored answers gives the same bytes.`,
			statusError, statusUsage, statusLocked, statusGuard, statusInterrupted),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := output.CheckName(name); err != nil {
				return usageError{err}
			}
			w, err := a.open(cmd.Context(), assay.OpenOptions{Offline: true})
			if err != nil {
				return err
			}
			defer closing(w.Close, &err)
			r, err := w.Release(cmd.Context(), name)
			if err != nil {
				return err
			}
			return a.print(r, func(out io.Writer) {
				printRelease(out, r)
				for _, k := range sorted(r.Withheld) {
					fmt.Fprintf(out, "  left out: %s: %d\n", k, r.Withheld[k])
				}
				for _, text := range r.Warnings {
					fmt.Fprintf(a.err, "mind: %s\n", text)
				}
			})
		},
	}
	cmd.Flags().StringVar(&name, "as", "", "name of the folder, e.g. v1.0.0")
	return cmd
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
