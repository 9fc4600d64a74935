package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"assay"
)

func (a *app) lsCommand() *cobra.Command {
	var q assay.ListQuery
	cmd := &cobra.Command{
		Use:   "ls [STAGE]",
		Short: "List stored items of a stage",
		Example: `  assay ls parse --state excluded
  assay ls label --label misleading --sample 20 --seed 7
  assay ls candidates --state waiting
  assay ls ratings
  assay ls conflicts
  assay ls unclaimed --reason not_in_recipe
  assay ls disputes`,
		Long: help(`List the stored items of a stage (a kind or kind/plugin), one line each: stage, key, state, reason, summary.
"ratings" lists printed ratings that no map names; "candidates" lists claims that were found in documents and wait for a person,
or are done (accepted) or excluded (rejected); "clusters" the claims that several sources tell in nearly the same words, and
"conflicts" those of them that were given different verdicts (reason binary, or six_way where only the finer scale differs), each
with its address, date and speaker. A cluster never merges claims. "unclaimed" lists the pages of imports that no site of the recipe
reads: not_in_recipe where another site would (add it to recipe.sites), listing where it is where a
site's listings begin, no_site where nobody knows it. "disputes" lists the pairs on which a
panel's annotators come to no consensus, or to another one than the label. Works while a build runs.`, statusError, statusUsage, statusLocked),
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				q.Stage = args[0]
			}
			if err := q.Check(); err != nil {
				return usageError{err}
			}
			var list []assay.Listed
			err := a.reading(cmd.Context(), func(r assay.Reader) (err error) {
				list, err = r.List(cmd.Context(), q)
				return err
			})
			if err != nil {
				return err
			}
			if list == nil {
				list = []assay.Listed{}
			}
			return a.print(list, func(w io.Writer) {
				t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				for _, l := range list {
					word, text := l.Reason+l.Label, l.Summary
					if l.State == "failed" {
						word, text = l.Class, l.Reason // a sentence, not a word
					}
					line := []string{l.Stage, l.Key, l.State, word}
					if text = strings.TrimSpace(text); text != "" {
						line = append(line, cut(text, 160))
					}
					fmt.Fprintln(t, strings.Join(line, "\t"))
					for _, c := range l.Claims {
						fmt.Fprintln(t, "  "+cut(c.String(), 240))
					}
				}
				t.Flush()
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.State, "state", "", "done, excluded, failed or waiting")
	f.StringVar(&q.Reason, "reason", "", "of an exclusion or failure")
	f.StringVar(&q.Label, "label", "", "supporting, misleading or unrelated; of judge items a verdict")
	f.StringVar(&q.Source, "source", "", "part of the key, e.g. a host; of candidates, ratings and clusters also of the site's name")
	f.IntVar(&q.Sample, "sample", 0, "draw so many")
	f.Uint64Var(&q.Seed, "seed", 1, "of the sample")
	return cmd
}

// cut shortens a text for a line, never inside a character.
func cut(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
