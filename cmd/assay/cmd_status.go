package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"assay"
	"assay/pipeline"
)

func (a *app) statusCommand() *cobra.Command {
	var why string
	var all bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Say how fresh every stage is, or why one item is stale",
		Example: "  assay status\n  assay status --all\n  assay status --why https://www.politifact.com/factchecks/...\n  assay status --why c_0123456789abcdef",
		Long: help(`Count the items of every stage by reason: fresh, missing, version-changed, recipe-changed, input-changed,
answer-changed, decided, failed-before, waiting, blocked. With --why, explain one item: a page address, a claim or
pair id, or a table row. Many stages of one kind that are all missing or all fresh are one line, and so are sources
that no run has anything to tell of; --all and --json name them. Works while a build runs, and where the workspace
may not be written.`, statusError, statusUsage, statusLocked),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s assay.StatusReport
			var list []pipeline.Explanation
			err := a.reading(cmd.Context(), func(r assay.Reader) (err error) {
				if why != "" {
					list, err = r.Why(cmd.Context(), why)
				} else {
					s, err = r.Status(cmd.Context())
				}
				return err
			})
			if err != nil {
				return err
			}
			if why != "" {
				return a.print(list, func(w io.Writer) {
					for _, x := range list {
						fmt.Fprintf(w, "%s  %s  %s\n", x.Stage, x.Key, x.Reason)
						if x.Detail != "" {
							fmt.Fprintf(w, "    %s\n", x.Detail)
						}
					}
				})
			}
			return a.print(s, func(w io.Writer) {
				if s.Building {
					fmt.Fprintln(w, "a build is running")
				}
				if all {
					fmt.Fprint(w, s.Report.Status())
				} else {
					fmt.Fprint(w, s.Report.Folded().Status())
				}
				for _, k := range sorted(s.Withheld) {
					fmt.Fprintf(w, "left out of a release: %s: %d\n", k, s.Withheld[k])
				}
				fmt.Fprint(w, s.Unsearched.Text())
				fmt.Fprint(w, assay.BatchesText(s.Batches, time.Now()))
				fmt.Fprintln(w, "spent so far:", assay.Cost(s.Spent))
				fmt.Fprint(w, assay.Unbilled(s.Spent))
				if n := s.Searches.Requests; n > 0 {
					fmt.Fprintf(w, "spent on searches: %d requests, $%.4f (%d without an answer, at their worst)\n", n, s.Searches.USD, s.Searches.Estimated)
				}
				fmt.Fprint(w, assay.SourcesText(s.Sources, all))
				for _, stop := range s.Held {
					fmt.Fprintf(w, "held back: %s\n", stop)
				}
				if s.Candidates > 0 {
					fmt.Fprintf(w, "candidates that wait for a person: %d (assay ls candidates)\n", s.Candidates)
				}
				fmt.Fprint(w, assay.UnclaimedText(s.Unclaimed))
				if s.Ratings > 0 {
					fmt.Fprintf(w, "ratings that no map names: %d (assay ls ratings)\n", s.Ratings)
				}
			})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "explain this item")
	cmd.Flags().BoolVar(&all, "all", false, "name every stage and every source")
	return cmd
}
