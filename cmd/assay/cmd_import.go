package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"assay"
)

// importExamples are examples of every kind.
const importExamples = `  assay import warc crawl-2024.warc.gz
  assay import dir saved-pages --base https://www.politifact.com/
  assay import reddit RS_2023-01.zst
  assay import thread t3_18r2fkv
  assay import pairs documents.csv
  assay import claims-table claims.csv
  assay import claims-table my.tsv --map claim=statement,rating=label,speaker=who
  assay import prices model_prices_and_context_window.json
  assay import archive corpus.wacz`

func (a *app) importCommand() *cobra.Command {
	var kinds []string
	for _, k := range assay.ImportKinds {
		kinds = append(kinds, fmt.Sprintf("  %-13s %s", k.Name, k.Doc))
	}
	cmd := &cobra.Command{
		Use:     "import KIND PATH...",
		Short:   "Fill the store from files",
		Example: importExamples,
		Long: help(`Read files into the store. Importing the same thing twice changes nothing. assay import KIND --help says what files of
a kind look like.

What cannot be read is named and counted, never skipped in silence; the command then ends with 3. A dump
that breaks off, or is none, ends it with 1; what came before is stored.`,
			statusError, statusUsage, statusPartial, statusLocked, statusInterrupted),
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("assay import: it needs a kind and a path; kinds are\n%s", strings.Join(kinds, "\n"))
			}
			return usagef("import: kind %q is unknown; kinds are\n%s", args[0], strings.Join(kinds, "\n"))
		},
	}
	for _, k := range assay.ImportKinds {
		cmd.AddCommand(a.importKind(k))
	}
	return cmd
}

// importKind is the command that imports files of one kind.
func (a *app) importKind(k assay.ImportKind) *cobra.Command {
	var o assay.ImportOptions
	cmd := &cobra.Command{
		Use:   k.Name + " PATH...",
		Short: k.Doc,
		Example: strings.Join(slices.DeleteFunc(strings.Split(importExamples, "\n"), func(line string) bool {
			return !strings.HasPrefix(line, "  assay import "+k.Name+" ")
		}), "\n"),
		Long: help(k.Form, statusError, statusUsage, statusPartial, statusLocked, statusInterrupted),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s: it needs a path; see %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			online := slices.ContainsFunc(args, k.Asks)
			w, err := a.open(cmd.Context(), assay.OpenOptions{Offline: !online, Online: online})
			if err != nil {
				return err
			}
			defer closing(w.Close, &err)
			if !slices.ContainsFunc(a.environ, func(v string) bool { return strings.HasPrefix(v, "GOMEMLIMIT=") }) {
				defer debug.SetMemoryLimit(debug.SetMemoryLimit(assay.ImportMemory))
			}
			problems := 0
			reports := []*assay.ImportReport{}
			var failed error
			for _, path := range args {
				var r *assay.ImportReport
				r, failed = w.Import(cmd.Context(), k.Name, path, o)
				if r != nil { // also of a file that breaks off: what came before is stored
					reports = append(reports, r)
					problems += r.Counts["problems"]
					if !a.json {
						printImport(screen{a.out}, r)
					}
				}
				if failed != nil {
					break
				}
			}
			if a.json {
				if err := a.print(reports, nil); err != nil {
					return errors.Join(failed, err)
				}
			}
			if failed == nil && problems > 0 {
				return errPartial
			}
			return failed
		},
	}
	switch k.Name {
	case "dir":
		cmd.Flags().StringVar(&o.Base, "base", "", "address of the folder's root")
	case "claims-table":
		cmd.Flags().StringVar(&o.As, "as", "", "name of the format, where the header does not tell")
		cmd.Flags().StringVar(&o.Map, "map", "", "which column is what of a claim, of any CSV, TSV or JSON: claim=statement,rating=label")
	}
	return cmd
}

func printImport(w io.Writer, r *assay.ImportReport) {
	fmt.Fprintf(w, "%s %s\n", r.Kind, r.Path)
	for _, k := range sorted(r.Counts) {
		fmt.Fprintf(w, "  %-28s %d\n", k, r.Counts[k])
	}
	if r.Table != nil {
		printTable(w, r.Table)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "  problem: %s\n", p)
	}
	if more := r.Counts["problems"] - len(r.Problems); more > 0 {
		fmt.Fprintf(w, "  and %d more problems\n", more)
	}
	for _, a := range r.Asks {
		fmt.Fprintf(w, "  a build asks: %s\n", a)
	}
	if r.Hint != "" {
		fmt.Fprintf(w, "  mind: %s\n", r.Hint)
	}
}

// printTable writes what a table says about itself, a line a number.
func printTable(w io.Writer, table any) {
	data, err := json.Marshal(table)
	if err != nil {
		return // unreachable: it is made of numbers
	}
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return // unreachable: it was just written
	}
	for _, k := range sorted(values) {
		if nested, ok := values[k].(map[string]any); ok {
			for _, n := range sorted(nested) {
				fmt.Fprintf(w, "  %-28s %v\n", k+" "+n, nested[n])
			}
			continue
		}
		fmt.Fprintf(w, "  %-28s %v\n", k, values[k])
	}
}
