package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"assay"
)

func (a *app) gcCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "gc",
		Short:   "Drop what nothing live or released needs any more",
		Example: "  assay gc",
		Long: help(`Copy what the live references reach, what kept releases cite and what was imported into a fresh store, and
put it in the place of the old one.`, statusError, statusUsage, statusLocked, statusInterrupted),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			w, err := a.open(cmd.Context(), assay.OpenOptions{Offline: true})
			if err != nil {
				return err
			}
			defer closing(w.Close, &err)
			r, err := w.GC(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(r, func(out io.Writer) {
				fmt.Fprintf(out, "kept %d records, dropped %d; %.1f MiB before, %.1f MiB after\n", r.Kept, r.Dropped, mib(r.BytesBefore), mib(r.BytesAfter))
			})
		},
	}
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "backup FILE",
		Short:   "Write the whole store as one file",
		Example: "  assay backup store.assay\n  assay backup - | zstd > store.assay.zst",
		Long: help(`Write the store as it is at one moment to FILE, or to stdout for "-", with assay.yaml, prompts and prices. Works while
a build runs, which ends once the backup is read, and where the workspace may not be written: name a FILE elsewhere.`,
			statusError, statusUsage, statusLocked),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			records := 0
			backup := func(to io.Writer) error {
				return a.reading(cmd.Context(), func(r assay.Reader) (err error) {
					records, err = r.Backup(cmd.Context(), to)
					return err
				})
			}
			if args[0] == "-" {
				return backup(a.out)
			}
			if exists(args[0]) {
				return fmt.Errorf("%s exists; a backup never overwrites, choose another name", args[0])
			}
			tmp, err := os.CreateTemp(filepath.Dir(args[0]), ".backup-")
			if err != nil {
				return fmt.Errorf("write %s: %w; name a file in a folder that may be written", args[0], err)
			}
			if err = errors.Join(backup(tmp), tmp.Sync(), tmp.Close()); err != nil {
				return errors.Join(err, os.Remove(tmp.Name()))
			}
			if err := os.Rename(tmp.Name(), args[0]); err != nil {
				return err
			}
			fmt.Fprintf(a.err, "%d records in %s\n", records, args[0])
			return nil
		},
	}
}

func (a *app) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "restore FILE",
		Short:   "Make a workspace's store from a backup",
		Example: "  assay -C new restore store.assay\n  zstd -dc store.assay.zst | assay -C new restore -",
		Long: help(`Read a backup into the folder, which must hold no store yet. It brings assay.yaml, prompts and prices along where the
folder has none. A backup that is cut or damaged is refused as a whole.`, statusError, statusUsage),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := a.in
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			n, err := assay.Restore(cmd.Context(), a.dir, in)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.err, "%d records restored\n", n)
			return nil
		},
	}
}
