package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"assay"
)

func (a *app) showCommand() *cobra.Command {
	var trace, verdict bool
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show one record with its whole provenance, as JSON",
		Example: "  assay show c_0123456789abcdef\n  assay show c_0123456789abcdef --trace\n  assay show c_0123456789abcdef --verdict\n  assay show reddit:t3_18r2fkv\n  assay show https://www.politifact.com/factchecks/...",
		Long: help(`Show a claim (c_...), a candidate (k_...), a pair (p_...), a document, a page by its address, an imported row (raguard/12) or a
model call, with the items, exchanges, leads and calls that led to it. For people: with --trace, the search for a claim's
evidence step by step; with --verdict, the verdict that a judge drafted for it, with its reasons, its doubts and the
evidence that was weighed. Works while a build runs.`,
			statusError, statusUsage, statusLocked),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if trace && verdict {
				return usagef("--trace and --verdict exclude each other")
			}
			var data json.RawMessage
			err := a.reading(cmd.Context(), func(r assay.Reader) (err error) {
				data, err = r.Show(cmd.Context(), args[0])
				return err
			})
			if err != nil {
				return err
			}
			if trace {
				return assay.WriteTrace(screen{a.out}, args[0], data)
			}
			if verdict {
				return assay.WriteDraft(screen{a.out}, args[0], data)
			}
			fmt.Fprintf(screen{a.out}, "%s\n", data)
			return nil
		},
	}
	cmd.Flags().BoolVar(&trace, "trace", false, "the search for a claim's evidence, step by step")
	cmd.Flags().BoolVar(&verdict, "verdict", false, "the drafted verdict of a claim, with what it rests on")
	return cmd
}
