package corpus

import (
	"fmt"
	"sort"
	"strings"
)

// Category is what a claim is about: one of the six of GPE (seed section on the dataset).
type Category string

// The six categories.
const (
	Politics    Category = "politics"
	Celebrity   Category = "celebrity" // entertainment and gossip
	Science     Category = "science"
	Medical     Category = "medical" // medicine and health
	History     Category = "history"
	Commonsense Category = "commonsense" // everyday life: products, money, food, scams
)

// Categories lists the categories in the order in which tables show them.
var Categories = []Category{Politics, Celebrity, Science, Medical, History, Commonsense}

// Where a claim's category is from.
const (
	CategoryFromRule  = "rule"  // tags of the page, or what the source is about
	CategoryFromModel = "model" // a model read the claim
)

// CategoryNamed finds a category; the error names the known ones.
func CategoryNamed(name string) (Category, error) {
	var known []string
	for _, c := range Categories {
		if string(c) == name {
			return c, nil
		}
		known = append(known, string(c))
	}
	sort.Strings(known)
	return "", fmt.Errorf("category %q is unknown; known are %s", name, strings.Join(known, ", "))
}
