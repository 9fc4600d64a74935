//go:build unix

package assay

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The benchmarks of the root give ratios of ours against a raw loop that does the same work with the
// same libraries and keeps the least that is of use. Both run in this process one after the other, so
// that machine, GOGC and page cache are the same, benchPairs times; the median counts.
const benchPairs = 5

func pairsOf(b *testing.B) int {
	if testing.Short() {
		return 1
	}
	return benchPairs
}

// A cost is what a leg of a benchmark took, in seconds.
type cost struct{ wall, cpu float64 }

func measure(b *testing.B, do func()) cost {
	b.Helper()
	runtime.GC() // the other leg's garbage is not this one's to collect
	cpu, start := cpuSeconds(b), time.Now()
	do()
	return cost{time.Since(start).Seconds(), cpuSeconds(b) - cpu}
}

func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func median[T cmp.Ordered](v []T) T {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// ratios collects ours by raw over the pairs of a benchmark.
type ratios struct{ wall, cpu []float64 }

func (r *ratios) add(ours, raw cost) {
	r.wall, r.cpu = append(r.wall, ours.wall/raw.wall), append(r.cpu, ours.cpu/raw.cpu)
}

func (r *ratios) report(b *testing.B, against string) {
	b.ReportMetric(median(r.wall), "wall-x-"+against)
	b.ReportMetric(median(r.cpu), "cpu-x-"+against)
}

// A pageMaker makes claim pages of about 65 KB in the site's markup: as many elements, as much script
// and as much text, in invented words.
type pageMaker struct {
	words []string
	tails []string // what follows the claim's box
}

const benchPageBytes = 65_000

func newPageMaker() *pageMaker {
	rng := rand.New(rand.NewPCG(1, 1))
	m := &pageMaker{words: make([]string, 4000)}
	for i := range m.words {
		w := make([]byte, 2+rng.IntN(9))
		for j := range w {
			w[j] = 'a' + byte(rng.IntN(26))
		}
		m.words[i] = string(w)
	}
	for range 50 {
		var t strings.Builder
		fmt.Fprintf(&t, "<article class=\"m-textblock\">\n")
		for range 30 {
			fmt.Fprintf(&t, "<p>%s <a href=\"https://%s.example/%s\">%s</a> %s</p>\n", m.say(rng, 40), m.say(rng, 1), m.say(rng, 1), m.say(rng, 3), m.say(rng, 20))
		}
		t.WriteString("</article>\n<ul class=\"o-listicle__list\">\n")
		for t.Len() < benchPageBytes-18_500 {
			fmt.Fprintf(&t, "<li class=\"o-listicle__item\"><div class=\"m-teaser\"><a href=\"/factchecks/%s/\" class=\"m-teaser__link\"><span class=\"m-teaser__title\">%s</span></a>"+
				"<div class=\"m-teaser__meta\">By <span>%s</span> • %s</div></div></li>\n", m.say(rng, 1), m.say(rng, 8), m.say(rng, 2), m.say(rng, 2))
		}
		t.WriteString("</ul>\n")
		for range 4 {
			fmt.Fprintf(&t, "<script>window.dataLayer=window.dataLayer||[];dataLayer.push({\"%s\":\"%s\"})</script>\n", m.say(rng, 1), m.say(rng, 450))
		}
		t.WriteString("</main></body></html>\n")
		m.tails = append(m.tails, t.String())
	}
	return m
}

func (m *pageMaker) say(rng *rand.Rand, n int) string {
	w := make([]string, n)
	for i := range w {
		w[i] = m.words[min(rng.IntN(len(m.words)), rng.IntN(len(m.words)))]
	}
	return strings.Join(w, " ")
}

// benchPath is the path of the nth page.
func benchPath(n int) string {
	return fmt.Sprintf("/factchecks/2023/mar/%02d/bench-speaker/claim-%06d/", 1+n%28, n)
}

func (m *pageMaker) statement(n int, size string) string {
	return fmt.Sprintf(`<article class="m-statement m-statement--is-%s m-statement--false">
<div class="m-statement__author"><div class="m-statement__meta">
<a href="/personalities/bench-speaker/" class="m-statement__name" title="Bench Speaker">
Bench Speaker
</a>
<div class="m-statement__desc">
stated on March 9, 2023 in a speech:
</div></div></div>
<div class="m-statement__content"><div class="m-statement__body"><div class="m-statement__quote-wrap">
<div class="m-statement__quote"><a href="%s">
“Village number %d has %d wells.”
</a></div></div>
<div class="m-statement__meter"><div class="c-image">
<img src="/img/meter-false-th.jpg" class="c-image__thumb" alt="true" width="219" height="196">
<picture><img src="/img/meter-false.jpg" class="c-image__original" width="219" height="196" alt="false"></picture>
</div></div></div></div></article>
`, size, benchPath(n), n, n+2)
}

// page is the nth claim page.
func (m *pageMaker) page(n int) []byte {
	var b bytes.Buffer
	b.Grow(benchPageBytes + 4096)
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Wells %d</title>\n", n)
	for i := range 12 {
		fmt.Fprintf(&b, "<meta property=\"og:%s\" content=\"%s\">\n", m.words[i], m.words[(n+i)%len(m.words)])
	}
	b.WriteString("</head><body>\n")
	m.menu(&b)
	b.WriteString("<main class=\"global-content\"><section class=\"o-stage\">\n")
	b.WriteString(m.statement(n, "xlarge"))
	fmt.Fprintf(&b, "</section>\n<div class=\"m-author__content\">By <a href=\"/staff/\">Tessa Brandt</a> <span class=\"m-author__date\">March 14, 2023</span></div>\n"+
		"<h2 class=\"c-title c-title--subline\">\nHow many wells village %d has\n</h2>\n", n)
	b.WriteString(m.tails[n%len(m.tails)])
	return b.Bytes()
}

func (m *pageMaker) menu(b *bytes.Buffer) {
	b.WriteString("<nav><ul>\n")
	for i := range 40 {
		fmt.Fprintf(b, "<li class=\"m-list__item\"><a href=\"/personalities/%s/\" class=\"m-list__link\">%s</a></li>\n", m.words[i], m.words[i+100])
	}
	b.WriteString("</ul></nav>\n")
}

// benchPerListing is how many claims a listing page shows, as many as the site's.
const benchPerListing = 30

// hostListing is a listing page, 1 or more, of a host that has every benchHosts-th of n claims.
func (m *pageMaker) hostListing(page, host, n int) []byte {
	var b bytes.Buffer
	b.WriteString("<!DOCTYPE html><html><head><title>Latest</title></head><body>\n")
	m.menu(&b)
	b.WriteString("<main><ul class=\"o-listicle__list\">\n")
	i := host + (page-1)*benchPerListing*benchHosts
	for range benchPerListing {
		if i >= n {
			break
		}
		b.WriteString("<li class=\"o-listicle__item\">" + m.statement(i, "medium") + "</li>\n")
		i += benchHosts
	}
	b.WriteString("</ul>\n")
	if i < n {
		fmt.Fprintf(&b, "<a class=\"c-button c-button--hollow\" href=\"?page=%d&category=truth-o-meter\">Next</a>\n", page+1)
	}
	b.WriteString(m.tails[page%len(m.tails)])
	return b.Bytes()
}

// benchWorkspace opens a new workspace with a configuration.
func benchWorkspace(b *testing.B, config string, overrides ...Override) *Workspace {
	b.Helper()
	dir, err := os.MkdirTemp(b.TempDir(), "w")
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ConfigName), []byte(config), 0o644); err != nil {
		b.Fatal(err)
	}
	w, err := Open(b.Context(), dir, OpenOptions{Overrides: overrides})
	if err != nil {
		b.Fatal(err)
	}
	return w
}

// buildUntil builds so far, and no item may fail.
func buildUntil(b *testing.B, w *Workspace, kind string) {
	b.Helper()
	rep, err := w.Build(b.Context(), BuildOptions{Until: kind})
	if err != nil {
		b.Fatal(err)
	}
	if rep.Partial() {
		b.Fatalf("items failed: %+v", rep.Pipeline.Stages)
	}
}
