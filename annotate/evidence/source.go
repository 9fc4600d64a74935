package evidence

import (
	"slices"
	"strings"

	"assay/corpus"
)

// A SourceClass is a kind of source with the credibility that it begins with, before a document is read.
type SourceClass struct {
	Name        string
	Credibility int // 0-3
	Doc         string
	Suffixes    []string // of hosts
	Domains     []string // registrable domains
}

// SourceClasses is the published table (methods, decision 7), in the order in which a host is looked up.
// A source that none names is "other".
var SourceClasses = []SourceClass{
	{Name: "satire", Credibility: 0, Doc: "publishes inventions as a joke",
		Domains: []string{"theonion.com", "babylonbee.com", "thebeaverton.com", "der-postillon.com", "waterfordwhispersnews.com", "legorafi.fr", "newsthump.com"}},
	{Name: "official", Credibility: 3, Doc: "governments, courts, statistical offices and international bodies, as records of what they do and count",
		Suffixes: []string{".gov", ".mil", ".gov.uk", ".gov.au", ".gov.in", ".gov.za", ".gc.ca", ".gouv.fr", ".europa.eu", ".int", ".admin.ch", ".bund.de"},
		Domains:  []string{"un.org", "worldbank.org", "imf.org", "oecd.org", "destatis.de", "insee.fr", "parliament.uk", "nhs.uk"}},
	{Name: "research", Credibility: 3, Doc: "reviewed journals and research institutions",
		Suffixes: []string{".edu", ".ac.uk", ".ac.jp", ".ac.za"},
		Domains: []string{"nature.com", "science.org", "thelancet.com", "nejm.org", "bmj.com", "jamanetwork.com", "cell.com", "pnas.org", "plos.org", "springer.com", "wiley.com",
			"sciencedirect.com", "cochrane.org", "cochranelibrary.com", "frontiersin.org", "mdpi.com"}},
	{Name: "preprint", Credibility: 2, Doc: "papers that nobody has reviewed yet", Domains: []string{"arxiv.org", "biorxiv.org", "medrxiv.org", "ssrn.com", "osf.io"}},
	{Name: "fact_checker", Credibility: 3, Doc: "organisations that check claims by a published method",
		Domains: []string{"politifact.com", "snopes.com", "factcheck.org", "fullfact.org", "africacheck.org", "leadstories.com", "sciencefeedback.co", "science.feedback.org",
			"healthfeedback.org", "boomlive.in", "altnews.in", "factly.in", "maldita.es", "newtral.es", "chequeado.com", "correctiv.org", "verafiles.org", "tfc-taiwan.org.tw", "polygraph.info"}},
	{Name: "agency", Credibility: 3, Doc: "news agencies", Domains: []string{"apnews.com", "ap.org", "reuters.com", "afp.com", "dpa.com", "efe.com", "upi.com"}},
	{Name: "news", Credibility: 2, Doc: "newsrooms with a published code and corrections",
		Domains: []string{"bbc.com", "bbc.co.uk", "nbcnews.com", "npr.org", "pbs.org", "cbsnews.com", "abcnews.go.com", "go.com", "cnn.com", "nytimes.com", "washingtonpost.com", "wsj.com",
			"theguardian.com", "economist.com", "ft.com", "bloomberg.com", "politico.com", "axios.com", "usatoday.com", "latimes.com", "propublica.org", "aljazeera.com", "dw.com",
			"lemonde.fr", "elpais.com", "spiegel.de", "zeit.de", "sueddeutsche.de", "billboard.com", "people.com", "variety.com", "time.com", "theatlantic.com"}},
	{Name: "encyclopedia", Credibility: 2, Doc: "reference works", Domains: []string{"wikipedia.org", "wikidata.org", "britannica.com"}},
	{Name: "social", Credibility: 1, Doc: "what anybody may post", Domains: []string{"reddit.com", "redd.it", "x.com", "twitter.com", "facebook.com", "instagram.com", "tiktok.com",
		"youtube.com", "quora.com", "4chan.org", "t.me", "telegram.org", "truthsocial.com", "bsky.app", "medium.com", "substack.com", "blogspot.com", "wordpress.com", "tumblr.com"}},
}

// otherSource is the class of a source that the table does not name.
var otherSource = SourceClass{Name: "other", Credibility: 1, Doc: "named in no class"}

// ClassOf finds the class of a document by its address, or by its kind where that says more.
func ClassOf(d corpus.Document) SourceClass {
	host := corpus.Host(d.URL)
	if host == "" {
		host, _, _ = strings.Cut(d.Source, "/")
	}
	domain := corpus.RegistrableDomain(host)
	for _, c := range SourceClasses {
		if slices.Contains(c.Domains, domain) || slices.Contains(c.Domains, host) {
			return c
		}
		for _, s := range c.Suffixes {
			if strings.HasSuffix(host, s) || host == s[1:] {
				return c
			}
		}
	}
	return otherSource
}
