package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"assay"
	"assay/pipeline"
)

func (a *app) archiveCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "archive OUT",
		Short:   "Write everything that a build needs as a web archive (WARC or WACZ)",
		Example: "  assay archive corpus.warc.gz\n  assay archive corpus.wacz\n  assay init again && assay -C again import archive corpus.wacz && assay -C again build --replay",
		Long: help(`Write OUT, a WARC 1.1 file if it ends in .warc.gz, or a WACZ file if it ends in .wacz, with every exchange as it is
stored (requests, responses, and revisits where a body repeats), every model call, the imported tables and documents,
assay.yaml and the prompts. Programs for web archives read the pages; assay import archive reads all of it into a new
workspace, where assay build --replay gives the same release. The same store gives the same bytes.

What is stored is archived, also what no release uses; assay gc drops it first. The file holds other people's pages, and
runtime.contact of your assay.yaml: think before you hand it on. Credentials are never stored, so they are not in it.`,
			statusError, statusUsage, statusLocked, statusInterrupted),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := assay.CheckArchiveName(args[0]); err != nil {
				return usagef("archive %s: %w", args[0], err)
			}
			w, err := a.open(cmd.Context(), assay.OpenOptions{Offline: true})
			if err != nil {
				return err
			}
			defer closing(w.Close, &err)
			o := assay.ArchiveOptions{Force: force}
			done := func() {}
			if !a.quiet {
				d := pipeline.NewDisplay(pipeline.DisplayOptions{W: a.err})
				done = d.Close
				o.Progress = func(what string, n, total int) { d.Update(pipeline.Tally{Stage: what, Done: n, Ran: n, Total: total}) }
			}
			started := time.Now()
			r, err := w.Archive(cmd.Context(), args[0], o)
			done()
			if err != nil {
				return err
			}
			return a.print(r, func(out io.Writer) {
				fmt.Fprintf(out, "%s: %d records, %.1f MiB, in %s\n", r.Path, r.Records, mib(r.Bytes), since(started))
				fmt.Fprintf(out, "  %-28s %d\n", "exchanges", r.Exchanges)
				fmt.Fprintf(out, "  %-28s %d\n", "of these revisits", r.Revisits)
				fmt.Fprintf(out, "  %-28s %d\n", "pages", r.Pages)
				for _, name := range sorted(r.Tables) {
					fmt.Fprintf(out, "  %-28s %d\n", "table "+name, r.Tables[name])
				}
				for _, name := range r.Files {
					fmt.Fprintf(out, "  %-28s %s\n", "file", name)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that is there")
	return cmd
}
