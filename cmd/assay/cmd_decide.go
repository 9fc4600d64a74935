package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"assay"
)

func (a *app) decideCommand() *cobra.Command {
	words := strings.Join(assay.VerdictNames(), ", ")
	var kinds strings.Builder
	for _, k := range assay.DecisionKinds {
		fmt.Fprintf(&kinds, "\n  %s  %s", k.Name, k.Doc)
	}
	var d assay.Decision
	var no bool
	cmd := &cobra.Command{
		Use:   "decide KIND ID",
		Short: "Append what you decide about something that waits for a person",
		Example: `  assay ls candidates --state waiting
  assay decide accept-claim k_0123456789abcdef --verdict mostly_true --by "Ilse Holm"
  assay decide accept-claim k_0123456789abcdef --no --by "Ilse Holm" --note "a forecast"`,
		Long: help(`Append a decision; nothing that was decided before is changed. Of each person the last decision counts, one no is a no, and
people who give different verdicts leave the thing open until somebody settles it with --adjudicate.

A yes to a claim needs a verdict: `+words+`. Kinds:`+kinds.String(),
			statusError, statusUsage, statusLocked),
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			d.Kind, d.Target, d.Yes = args[0], args[1], !no
			switch {
			case no && d.Verdict != "":
				return usagef("--no and --verdict exclude each other")
			case !no && d.Verdict == "":
				return usagef("an accepted claim needs a verdict: --verdict with one of %s", words)
			}
			if d.By = cmp.Or(d.By, a.variable("USER")); d.By == "" {
				return usagef("it has to be known who decides; give a name with --by")
			}
			w, err := a.open(cmd.Context(), assay.OpenOptions{Offline: true})
			if err != nil {
				return err
			}
			defer closing(w.Close, &err)
			kept, err := w.Decide(d)
			if err != nil {
				return err
			}
			r, err := w.Decided(kept.Kind, kept.Target)
			if err != nil {
				return err
			}
			shown := decided{kept, "done", r.Reason}
			what := "accepted as " + string(kept.Verdict)
			switch {
			case r.Disagree:
				shown.State, what = "waiting", string(kept.Verdict)+", noted,"
			case r.No && !no:
				shown.State, what = "excluded", "yes, noted,"
			case r.No:
				shown.State, what = "excluded", "rejected"
			}
			return a.print(shown, func(out io.Writer) {
				fmt.Fprintf(out, "%s %s by %s: %s\n", kept.Target, what, kept.By, kept.Candidate.Text)
				switch {
				case r.Disagree:
					fmt.Fprintf(out, "  it waits (verdicts_disagree): %s; --adjudicate settles it\n", r.Reason)
				case r.No && !no:
					fmt.Fprintf(out, "  it stays out: %s, and one no is a no; --adjudicate settles it\n", r.Reason)
				}
			})
		},
	}
	f := cmd.Flags()
	f.StringVar((*string)(&d.Verdict), "verdict", "", "of an accepted claim: "+words)
	f.BoolVar(&no, "no", false, "reject it")
	f.StringVar(&d.By, "by", "", "who decides (default: $USER)")
	f.StringVar(&d.Note, "note", "", "why")
	f.BoolVar(&d.Adjudicate, "adjudicate", false, "settle what others disagree about")
	return cmd
}

// decided is a decision with what has become of its target.
type decided struct {
	assay.Decision
	State  string `json:"state"`           // done, excluded or waiting, as ls candidates has it
	Reason string `json:"reason,omitzero"` // of excluded and waiting
}

// variable returns a variable of the environment that the command was given.
func (a *app) variable(name string) string {
	for _, e := range a.environ {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}
