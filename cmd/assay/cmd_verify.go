package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"assay"
	"assay/output"
)

func (a *app) verifyCommand() *cobra.Command {
	var rebuild bool
	cmd := &cobra.Command{
		Use:     "verify DIR...",
		Short:   "Check release folders",
		Example: "  assay verify release/3f2a91c07d1e\n  assay verify --rebuild release/v1.0.0",
		Long: help(`Check that every file has its hash, that tables have the manifest's rows in order, and that every reference
leads to a row, and say how many pairs have a document that may give the verdict away. With --rebuild, release again from the workspace and compare the content, byte for byte.`,
			statusError, statusUsage, statusLocked, statusVerify),
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var w *assay.Workspace
			if rebuild {
				if w, err = a.open(cmd.Context(), assay.OpenOptions{Replay: true}); err != nil {
					return err
				}
				defer closing(w.Close, &err)
			}
			var checked []verified
			sound := true
			for _, dir := range args {
				v, err := check(cmd.Context(), dir, w)
				if err != nil {
					return err
				}
				checked, sound = append(checked, v), sound && len(v.Problems) == 0
			}
			if err := a.print(checked, func(w io.Writer) {
				for _, v := range checked {
					for _, p := range v.Problems {
						fmt.Fprintf(w, "%s: %s\n", v.Dir, p)
					}
					if len(v.Problems) == 0 {
						fmt.Fprintf(w, "%s is sound\n", v.Dir)
						for _, l := range slices.Sorted(maps.Keys(v.Leakage)) {
							if n := v.Leakage[l]; n > 0 {
								fmt.Fprintf(w, "  %s: %d pairs\n", l, n)
							}
						}
					}
				}
			}); err != nil {
				return err
			}
			if !sound {
				return errVerify
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "release again from the workspace and compare")
	return cmd
}

// verified is what became of one folder.
type verified struct {
	Dir      string         `json:"dir"`
	Problems []string       `json:"problems"`
	Leakage  map[string]int `json:"leakage,omitempty"` // pairs of a sound folder, by flag
}

// check verifies a folder, and compares it with a rebuilt one if there is a workspace.
func check(ctx context.Context, dir string, w *assay.Workspace) (verified, error) {
	v := verified{Dir: dir, Problems: []string{}}
	if _, err := os.Stat(dir); err != nil {
		return v, err
	}
	problems, err := output.Verify(ctx, dir)
	if err == nil && len(problems) == 0 && w != nil {
		problems, err = w.Rebuild(ctx, dir)
	}
	v.Problems = append(v.Problems, problems...)
	if err == nil && len(v.Problems) == 0 {
		v.Leakage, err = output.ReadLeakage(dir)
	}
	return v, err
}
