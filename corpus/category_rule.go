package corpus

import "strings"

// categoryTags says which category a tag of a page speaks for, by Slug of the tag. Tags that name a
// place, a person, a medium or a form ("Facebook posts") say nothing and are not listed; nor are those
// that stand on pages of several categories ("Drugs", "Health Care", "Military").
var categoryTags = tagTable(map[Category]string{
	Politics: `abortion|bipartisanship|budget|campaign finance|candidate biography|census|city budget|city government|civil rights|congress|congressional rules|
county budget|county government|criminal justice|debt|deficit|economy|education|elections|ethics|federal budget|foreign policy|gays and lesbians|government|
government regulation|guns|homeland security|housing|immigration|impeachment|income|infrastructure|jobs|labor|law|legal issues|medicaid|medicare|negative campaigning|
party platform|patriotism|politics|polls and public opinion|public safety|public service|race and ethnicity|regulation|small business|social security|state budget|
state finances|states|supreme court|taxes|terrorism|trade|transparency|transportation|ukraine|unions|us politics|veterans|voter id laws|voting record|wealth|welfare|
workers|world|uk politics`,
	Celebrity: `actors|awards|box office|celebrities|celebrity|entertainment|entertainment & arts|film|gossip|movies|music|pop culture|pop|royals|sports|style|television|touring|tv`,
	Science: `animals|astronomy|biology|climate|climate change|climate-change|earth|earthquake|environment|geology|moons|physics|planets|science|science & environment|
scicheck|space|weather|wildlife`,
	Medical: `alternative medicine|cancer|coronavirus|covid-19|covid19|devices|disease|diseases|drug safety|flu|health|health & wellness|health check|influenza|medical|
medicine|mental health|nutrition|pandemic|public health|vaccination|vaccine|vaccines`,
	History:     `ancient history|archaeology|historical|history|world war ii`,
	Commonsense: `consumer|consumer protection|consumer safety|fauxtography|food|food safety|fraud|household|money|personal finance|product safety|recall|scams|shopping`,
})

// categoryRare are categories whose tags are given to few pages, and then for what the page is about:
// they count double beside the tags that many pages carry.
var categoryRare = map[Category]bool{Celebrity: true, History: true}

// anybodysTags stand on pages about what anybody says anywhere. There it says nothing what the source
// mostly writes about.
var anybodysTags = tagTable(map[Category]string{"": `bloggers|chain email|facebook fact-checks|facebook posts|fake news|global news service|instagram posts|punditfact|pundits|
threads posts|tiktok posts|tweets|viral image|x posts|youtube videos`})

func tagTable(rows map[Category]string) map[string]Category {
	out := map[string]Category{}
	for c, row := range rows {
		for _, tag := range strings.FieldsFunc(row, func(r rune) bool { return r == '|' || r == '\n' }) {
			out[Slug(tag)] = c
		}
	}
	return out
}

// How sure a rule is: its share of right categories on captured claims of all six categories with a key
// made by hand, rounded down. The key holds few claims that only their source speaks for, and those of
// sources that write about much.
const (
	tagConfidence     = 0.7
	defaultConfidence = 0.3
)

// RuleConfidence is how sure the rule is: by tags that agree, or by what the source writes about.
func RuleConfidence(byTags bool) float64 {
	if byTags {
		return tagConfidence
	}
	return defaultConfidence
}

// RuleCategory tells what a claim is about by the tags of its page: the category that most of them speak
// for. Where none does, or two as many, it is what the source writes about; ok is false where the source
// writes about everything, or the claim is one of anybody's.
func RuleCategory(tags []string, source Category) (c Category, confidence float64, ok bool) {
	votes, all := map[Category]int{}, 0
	for _, tag := range tags {
		slug := Slug(tag)
		if _, anybody := anybodysTags[slug]; anybody {
			source = ""
		}
		if c, ok := categoryTags[slug]; ok {
			n := 1
			if categoryRare[c] {
				n = 2
			}
			votes[c] += n
			all += n
		}
	}
	best, tied := Category(""), false
	for _, c := range Categories {
		switch n := votes[c]; {
		case n == 0:
		case best == "" || n > votes[best]:
			best, tied = c, false
		case n == votes[best]:
			tied = true
		}
	}
	switch {
	case best != "" && !tied:
		return best, tagConfidence * float64(votes[best]) / float64(all), true
	case source != "":
		return source, defaultConfidence, true
	}
	return "", 0, false
}
