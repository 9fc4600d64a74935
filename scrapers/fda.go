package scrapers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// fda reads openFDA: enforcement reports (recalls) of food, drugs and devices, and approved drugs where
// a reply about them is stored. No hits is status 404 with the code NOT_FOUND; dates are YYYYMMDD.
var fda = Site{
	Name:      "fda",
	Version:   2,
	Doc:       "openFDA: the latest 1,000 recalls each of food, drugs and devices, one document each",
	Host:      "api.fda.gov",
	Proven:    "captured",
	Reference: "captures of food recalls, of two pages of approved drugs and of both sorts of error; device and drug recalls have the form of food recalls by the documentation",
	Delay:     time.Second,
	Recognise: fdaRecognise,
	Start: func(base string, _ []string) []string {
		var out []string
		for _, noun := range []string{"food", "drug", "device"} {
			out = append(out, mirrored(base, fdaBase, fmt.Sprintf("/%s/enforcement.json?limit=%d&sort=report_date:desc", noun, fdaLimit)))
		}
		return out
	},
	Discover: fdaDiscover,
	Read:     fdaRead,
	Tells:    []string{"title*", "text*", "date", "tags*"},
	Category: corpus.Medical,
}

const (
	fdaBase   = "https://api.fda.gov"
	fdaLimit  = 100
	fdaLatest = 1000 // how far listings are followed
)

func fdaRecognise(base, address string) bool {
	path, _, ok := pathOf(base, address, fdaBase)
	return ok && (strings.HasSuffix(path, "/enforcement.json") || path == "/drug/drugsfda.json")
}

type fdaReply struct {
	Meta struct {
		Results struct {
			Skip  int `json:"skip"`
			Limit int `json:"limit"`
			Total int `json:"total"`
		} `json:"results"`
	} `json:"meta"`
	Results []fdaRecord `json:"results"`
	Error   *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

type fdaRecord struct {
	// An enforcement report.
	Number         string `json:"recall_number"` // may be empty
	Event          string `json:"event_id"`
	Firm           string `json:"recalling_firm"`
	City           string `json:"city"`
	State          string `json:"state"`
	Country        string `json:"country"`
	Class          string `json:"classification"`
	Status         string `json:"status"`
	ProductType    string `json:"product_type"`
	Product        string `json:"product_description"`
	Quantity       string `json:"product_quantity"`
	Reason         string `json:"reason_for_recall"`
	Distribution   string `json:"distribution_pattern"`
	Initiated      string `json:"recall_initiation_date"`
	Reported       string `json:"report_date"`
	Voluntary      string `json:"voluntary_mandated"`
	CodeInfo       string `json:"code_info"`
	Classification string `json:"center_classification_date"`

	// An approved application.
	Application string `json:"application_number"`
	Sponsor     string `json:"sponsor_name"`
	Submissions []struct {
		Type   string `json:"submission_type"`
		Number string `json:"submission_number"`
		Status string `json:"submission_status"`
		Date   string `json:"submission_status_date"`
		Class  string `json:"submission_class_code_description"`
	} `json:"submissions"`
	Products []struct {
		Brand       string `json:"brand_name"`
		Form        string `json:"dosage_form"`
		Route       string `json:"route"`
		Marketing   string `json:"marketing_status"`
		Ingredients []struct {
			Name     string `json:"name"`
			Strength string `json:"strength"`
		} `json:"active_ingredients"`
	} `json:"products"`
}

// fdaDiscover reads one reply. Where the next one is stands in a Link header, or follows from the counts.
func fdaDiscover(ctx context.Context, f Fetcher, address string) (Listing, error) {
	none := Listing{Refs: []corpus.Ref{}}
	r, err := listingResponse(ctx, f, address)
	var status *StatusError
	if errors.As(err, &status) {
		var answer fdaReply
		if decodeReply("discover", r.address, r.body, &answer) != nil || answer.Error == nil {
			return Listing{}, err
		}
		if status.Status == http.StatusNotFound && answer.Error.Code == "NOT_FOUND" {
			return none, nil // the interface's way to say that nothing was found
		}
		return Listing{}, fmt.Errorf("%w: %s: %s", err, answer.Error.Code, answer.Error.Message)
	}
	if err != nil {
		return Listing{}, err
	}
	answer, err := fdaResults("discover", r.address, r.body)
	if err != nil || len(answer.Results) == 0 {
		return none, err
	}
	return Listing{Refs: []corpus.Ref{{Source: "fda", URL: r.address}}, Next: fdaNext(r, answer)}, nil
}

var linkNext = regexp.MustCompile(`<([^<>]+)>\s*;\s*rel="?next"?`)

func fdaNext(r response, answer fdaReply) string {
	got := answer.Meta.Results
	seen := got.Skip + len(answer.Results)
	if m := linkNext.FindStringSubmatch(r.header.Get("Link")); m != nil && seen < got.Total {
		return corpus.ResolveURL(r.address, m[1])
	}
	u, err := url.Parse(r.address)
	if err != nil || seen >= got.Total || seen >= fdaLatest {
		return ""
	}
	q := u.Query()
	if q.Has("search_after") {
		return "" // such a listing is led by its links alone, and counts from the start in every reply
	}
	q.Set("skip", strconv.Itoa(seen))
	u.RawQuery = q.Encode()
	return corpus.CanonicalURL(u.String())
}

func fdaResults(doing, address string, body []byte) (fdaReply, error) {
	var answer fdaReply
	if err := decodeReply(doing, address, body, &answer); err != nil {
		return answer, err
	}
	if answer.Error != nil {
		return answer, noRecords(doing, address, "a list of results", body)
	}
	if answer.Results == nil {
		return answer, noRecords(doing, address, "a list of results", body)
	}
	return answer, nil
}

func fdaRead(p *fetch.Page) ([]corpus.Document, error) {
	answer, err := fdaResults("read", p.Final, p.Bytes())
	if err != nil {
		return nil, err
	}
	out := make([]corpus.Document, 0, len(answer.Results))
	for i, r := range answer.Results {
		switch {
		case r.Number != "", r.Event != "":
			out = append(out, fdaRecall(p, r))
		case r.Application != "":
			out = append(out, fdaApproval(p, r))
		default:
			return nil, noRecords("read", p.Final, fmt.Sprintf("recall_number, event_id or application_number in result %d", i), p.Bytes())
		}
	}
	return out, nil
}

// fdaNouns name the part of the interface that a product type belongs to.
var fdaNouns = map[string]string{"food": "food", "drugs": "drug", "devices": "device"}

func fdaRecall(p *fetch.Page, r fdaRecord) corpus.Document {
	noun := fdaNouns[strings.ToLower(r.ProductType)]
	if noun == "" {
		noun = "food"
	}
	which := fmt.Sprintf("recall_number:%q", r.Number)
	if r.Number == "" { // an event has a report for each of its products
		which = fmt.Sprintf("event_id:%q AND product_description:%q", r.Event, shortProduct(r.Product))
	}
	address := corpus.CanonicalURL(fmt.Sprintf("%s/%s/enforcement.json?search=%s", fdaBase, noun, url.QueryEscape(which)))
	place := strings.Join(distinct([]string{r.City, r.State, r.Country}), ", ")
	title := sentence("%s recalls %s", r.Firm, shortProduct(r.Product))
	d := record(p, address, strings.TrimSuffix(title, "."),
		joined(sentence("%s of %s recalled %s.", r.Firm, place, r.Product), sentence("The reason that %s gave for recalling %s is: %s.", r.Firm, shortProduct(r.Product), r.Reason)),
		joined(sentence("The FDA classified the recall as %s.", r.Class), sentence("Its number is %s.", r.Number), sentence("The recall began on %s.", spokenDay(r.Initiated)),
			sentence("The status of the recall is %s.", r.Status), sentence("Quantity: %s.", r.Quantity), sentence("Distribution: %s", r.Distribution)))
	d.Tags = distinct([]string{"recall", strings.ToLower(r.ProductType), r.Class})
	return dated(d, distinct([]string{r.Reported, r.Initiated})).Seal()
}

// shortProduct cuts a description at its first comma or semicolon.
func shortProduct(s string) string {
	short, _, _ := strings.Cut(corpus.Space(s), ";")
	if i := strings.IndexByte(short, ','); i > 10 {
		short = short[:i]
	}
	return short
}

func fdaApproval(p *fetch.Page, r fdaRecord) corpus.Document {
	address := corpus.CanonicalURL(fmt.Sprintf("%s/drug/drugsfda.json?search=%s", fdaBase, url.QueryEscape(fmt.Sprintf("application_number:%q", r.Application))))
	var brands, products, history []string
	latest := ""
	for _, product := range r.Products {
		var of []string
		for _, in := range product.Ingredients {
			of = append(of, joined(in.Name, in.Strength))
		}
		brands = append(brands, product.Brand)
		products = append(products, joined(sentence("%s (%s) contains %s.", product.Brand, strings.ToLower(product.Form), strings.Join(of, ", ")),
			sentence("Its marketing status is %s.", product.Marketing)))
	}
	names := strings.Join(distinct(brands), ", ")
	for _, s := range r.Submissions {
		verb := "has the status " + s.Status
		if s.Status == "AP" {
			verb = "was approved"
		}
		history = append(history, sentence("Submission %s %s (%s) to the FDA application %s for %s %s on %s.", s.Type, s.Number, s.Class, r.Application, names, verb, spokenDay(s.Date)))
		if s.Date > latest {
			latest = s.Date
		}
	}
	d := record(p, address, joined(names, "(application "+r.Application+")"),
		joined(sentence("%s holds the FDA application %s for %s.", r.Sponsor, r.Application, names)), joined(products...), joined(history...))
	d.Tags = []string{"drugs"}
	return dated(d, distinct([]string{latest})).Seal()
}
