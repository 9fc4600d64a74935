package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"assay"
	"assay/output"
)

func (a *app) verifyCommand() *cobra.Command {
	var rebuild bool
	cmd := &cobra.Command{
		Use:     "verify DIR",
		Short:   "Check a release folder",
		Example: "  assay verify release/3f2a91c07d1e\n  assay verify --rebuild release/v1.0.0",
		Long: help(`Check that every file has its hash, that tables have the manifest's rows in order, and that every reference
leads to a row. With --rebuild, release again from the workspace and compare the content, byte for byte.`,
			statusError, statusUsage, statusLocked, statusVerify),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			problems, err := output.Verify(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if len(problems) == 0 && rebuild {
				w, err := a.open(cmd.Context(), assay.OpenOptions{Replay: true})
				if err != nil {
					return err
				}
				defer closing(w.Close, &err)
				if problems, err = w.Rebuild(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			if problems == nil {
				problems = []string{}
			}
			if err := a.print(map[string]any{"dir": args[0], "problems": problems}, func(w io.Writer) {
				for _, p := range problems {
					fmt.Fprintln(w, p)
				}
				if len(problems) == 0 {
					fmt.Fprintf(w, "%s is sound\n", args[0])
				}
			}); err != nil {
				return err
			}
			if len(problems) > 0 {
				return errVerify
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "release again from the workspace and compare")
	return cmd
}
