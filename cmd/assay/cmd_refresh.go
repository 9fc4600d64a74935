package main

import (
	"context"

	"github.com/spf13/cobra"

	"assay"
	"assay/pipeline"
)

func (a *app) refreshCommand() *cobra.Command {
	var o assay.RefreshOptions
	var limits runLimits
	cmd := &cobra.Command{
		Use:   "refresh",
		Short: "Ask what is new, changed or gone, and release unless a guard rail stops it",
		Example: `  assay refresh
  assay refresh --dry-run
  assay refresh --accept politifact
  assay refresh --all --max-duration 6h`,
		Long: help(`Read the listings again, from the newest item on until what is known, ask again for the stored pages that are
due (runtime.refresh says how often, by age), and then build and release. Requests are conditional where a host
gave a validator, so a night costs what is different.

A changed verdict is a new version of its claim; a changed text is another claim, which names the one it replaces.
What answers 404, 410 or 451, twice and at least a day apart, is gone and leaves the release. What a host refuses
or fails to give keeps its last version.

Where more of a source's pages than publish allows have changed, vanished or failed at once, nothing is released
and nothing is paid for: look at the pages that are named, then run this again with --accept SOURCE. A refresh
that was interrupted goes on where it was.`,
			statusError, statusUsage, statusPartial, statusBudget, statusLocked, statusGuard, statusInterrupted),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			open := assay.OpenOptions{Offline: o.DryRun, Online: !o.DryRun}
			var err error
			if open.Overrides, err = limits.overrides(cmd, o.MaxDuration); err != nil {
				return err
			}
			rep, err := a.refresh(cmd.Context(), o, open)
			if err != nil {
				return err
			}
			if rep.Partial() {
				return errPartial
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.All, "all", false, "ask again for every stored page, due or not")
	f.StringSliceVar(&o.Accept, "accept", nil, "release this source although its guard rails say no; may be repeated")
	f.BoolVar(&o.DryRun, "dry-run", false, "say what would be asked, and ask nothing")
	f.StringVar(&o.As, "as", "", "name of the release folder, e.g. v1.0.0")
	limits.flags(cmd, &o.MaxDuration)
	return cmd
}

// refresh opens the workspace, serves questions, refreshes and prints the report.
func (a *app) refresh(ctx context.Context, o assay.RefreshOptions, open assay.OpenOptions) (rep assay.RefreshReport, err error) {
	err = a.session(ctx, open, o.DryRun, func(w *assay.Workspace, p pipeline.Progress, end func()) error {
		if err := o.Check(w.Config.Recipe); err != nil {
			return usageError{err}
		}
		o.Progress, o.Stop = p, a.stop
		var err error
		rep, err = w.Refresh(ctx, o)
		end()
		return a.reported(rep, rep.Text(o.DryRun), o.DryRun, rep.Build.Release, err)
	})
	return rep, err
}
