package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"assay"
)

func (a *app) doctorCommand() *cobra.Command {
	var o assay.DoctorOptions
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Look for what would stop or spoil a build",
		Example: "  assay doctor\n  assay doctor --offline --json\n  assay doctor --model",
		Long: help(`Check the configuration, contact, keys (by the name of their variable, never their value), the addresses that
runtime allows, disk, lock, prompts, store and index; ask every endpoint for its models and the configured sites for
their robots.txt; compare the clock. One line each, and one of help below what is not ok.

A model that was never probed gets two tiny calls, whether it keeps to the schema and takes a temperature of 0 and
the token field; what came of it is kept and shown. --model probes again, and tries attacks that documents may
carry on the model that annotates: about forty calls under the prompt that labels are made with, and as many
under the same prompt without its fence. Calls are recorded and count against runtime.max_usd like all others.`,
			"1  a check failed; each says what to do", statusUsage, statusInterrupted),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Open = assay.OpenOptions{Environ: a.environ, Log: a.log(a.err)}
			c, err := assay.Examine(cmd.Context(), a.dir, o)
			if err != nil {
				return err
			}
			if err := a.print(c, func(w io.Writer) { fmt.Fprint(w, c.Text()) }); err != nil {
				return err
			}
			if n := c.Failed(); n > 0 {
				return fmt.Errorf("%d of %d checks failed", n, len(c.Checks))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.Offline, "offline", false, "ask nothing of the network")
	cmd.Flags().BoolVar(&o.Model, "model", false, "probe every model anew and try attacks on the one that annotates")
	return cmd
}
