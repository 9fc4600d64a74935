package assay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// leftClaims are the claims that a walk left out for settings which people often mean otherwise. It may be used from many
// goroutines.
type leftClaims struct {
	unknown atomic.Int64 // whose category nobody tells

	mu       sync.Mutex
	speakers map[string]int // slugs of speakers that the recipe does not name
}

func (l *leftClaims) speaker(slug string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.speakers == nil {
		l.speakers = map[string]int{}
	}
	l.speakers[slug]++
}

// shownSpeakers is how many speakers a hint names.
const shownSpeakers = 5

// hints says which settings of the recipe left out what people may have meant to keep.
func (k *walk) hints() (out []string) {
	recipe := k.w.Config.Recipe
	if n := k.left.unknown.Load(); n > 0 {
		ask := "category_by: [rule, model] asks a model what they are about, and "
		if slices.Contains(recipe.CategoryBy, CategoryModel) {
			ask = ""
		}
		out = append(out, fmt.Sprintf("%s left out since nothing tells their category: %scategories: [] keeps claims of every category", claimsText(int(n)), ask))
	}
	k.left.mu.Lock()
	defer k.left.mu.Unlock()
	if n := total(k.left.speakers); n > 0 && k.met.Load() == 0 {
		slugs := sortedKeys(k.left.speakers)
		slices.SortStableFunc(slugs, func(a, b string) int { return cmp.Compare(k.left.speakers[b], k.left.speakers[a]) })
		var most []string
		for _, s := range slugs[:min(len(slugs), shownSpeakers)] {
			most = append(most, fmt.Sprintf("%s (%d)", s, k.left.speakers[s]))
		}
		out = append(out, fmt.Sprintf("no claim is of recipe.speakers, and %s left out for that; most are by %s; speakers: [] takes everybody", claimsText(n), strings.Join(most, ", ")))
	}
	return out
}

func claimsText(n int) string {
	if n == 1 {
		return "1 claim was"
	}
	return fmt.Sprintf("%d claims were", n)
}

// waitingText tells what waits for a person, a line each.
func waitingText(candidates, ratings int) string {
	var b strings.Builder
	for _, w := range []struct {
		n         int
		one, more string
		listed    string
	}{{candidates, "candidate waits", "candidates wait", "candidates --state waiting"}, {ratings, "rating waits for a verdict", "ratings wait for verdicts", "ratings"}} {
		switch {
		case w.n == 1:
			fmt.Fprintf(&b, "1 %s: assay ls %s\n", w.one, w.listed)
		case w.n > 1:
			fmt.Fprintf(&b, "%d %s: assay ls %s\n", w.n, w.more, w.listed)
		}
	}
	return b.String()
}
