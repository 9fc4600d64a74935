package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"assay"
)

func (a *app) initCommand() *cobra.Command {
	var profile string
	cmd := &cobra.Command{
		Use:     "init DIR",
		Short:   "Make a workspace with a commented " + assay.ConfigName,
		Example: "  assay init my-corpus\n  assay init my-corpus --profile gpe",
		Long: help(`Make the folder DIR with a commented assay.yaml. An existing assay.yaml is never touched.`,
			statusError, statusUsage),
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := assay.InitConfig(profile)
			if err != nil {
				return usageError{err}
			}
			dir := args[0]
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			path := filepath.Join(dir, assay.ConfigName)
			f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			if os.IsExist(err) {
				return fmt.Errorf("%s exists already; it is left as it is", path)
			} else if err != nil {
				return err
			}
			if _, err := f.Write(text); err != nil {
				return err
			}
			if err := f.Close(); err != nil {
				return err
			}
			fmt.Fprintf(a.out, `%s is a workspace now. Next:
  1. Open %s and set runtime.contact; name your model endpoint, or keep the builtin one to try things out.
  2. assay -C %s import reddit DUMP.zst   (documents to search in)
  3. assay -C %s build --until parse      (claims first; then build without --until)
`, dir, path, dir, dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&profile, "profile", "raguard", "the set of defaults")
	return cmd
}
