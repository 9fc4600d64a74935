package scrapers

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// cpsc reads the product recalls of the Consumer Product Safety Commission: the JSON of its retrieval
// service, and in archives the three forms that recalls had before: XML, a table, and the JSON of the
// recalls interface of 2013.
var cpsc = Site{
	Name:      "cpsc",
	Version:   2,
	Doc:       "Consumer Product Safety Commission: recalls of consumer products since 2024, one document each",
	Host:      "www.saferproducts.gov",
	Hosts:     []string{"saferproducts.gov"},
	Proven:    "captured",
	Reference: "captures of two recalls (2026) and of the older XML, table and JSON forms; the parameters of the service are from its documentation",
	Delay:     time.Second,
	Recognise: func(base, address string) bool {
		path, _, ok := pathOf(base, address, cpscBase, "https://saferproducts.gov")
		return ok && strings.EqualFold(path, cpscPath)
	},
	Start: func(base string, _ []string) []string { return []string{mirrored(base, cpscBase, cpscYear(cpscFirst))} },
	Discover: discoverReplies("cpsc", func(r response) (int, string, error) {
		recalls, err := cpscRecalls("discover", r.address, r.body)
		if err != nil || len(recalls) == 0 {
			return 0, "", err
		}
		return len(recalls), cpscNext(r.address), nil
	}),
	Read:     cpscRead,
	Tells:    []string{"title*", "text*", "date", "tags*"},
	Category: corpus.Commonsense,
}

const (
	cpscBase  = "https://www.saferproducts.gov"
	cpscPath  = "/RestWebServices/Recall"
	cpscFirst = 2024
)

// cpscYear asks for the recalls of one year: the service knows no pages, and all at once are more than
// a page may hold. The listing ends with the first year that has none.
func cpscYear(year int) string {
	return fmt.Sprintf("%s?RecallDateEnd=%d-12-31&RecallDateStart=%d-01-01&format=json", cpscPath, year, year)
}

func cpscNext(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	year, err := strconv.Atoi(strings.TrimSuffix(u.Query().Get("RecallDateStart"), "-01-01"))
	if err != nil {
		return ""
	}
	return corpus.ResolveURL(address, cpscYear(year+1))
}

// A cpscRecall is a recall in the words of today's service; the older forms fill in what they have.
type cpscRecall struct {
	ID            int           `json:"RecallID"`
	Number        string        `json:"RecallNumber"`
	Date          string        `json:"RecallDate"`
	Title         string        `json:"Title"`
	URL           string        `json:"URL"`
	Description   string        `json:"Description"`
	Products      []cpscProduct `json:"Products"`
	Hazards       []cpscName    `json:"Hazards"`
	Injuries      []cpscName    `json:"Injuries"`
	Remedies      []cpscName    `json:"Remedies"`
	Retailers     []cpscName    `json:"Retailers"`
	Importers     []cpscName    `json:"Importers"`
	Manufacturers []cpscName    `json:"Manufacturers"`
	Countries     []cpscCountry `json:"ManufacturerCountries"`
}

type cpscProduct struct {
	Name  string `json:"Name"`
	Type  string `json:"Type"`
	Units string `json:"NumberOfUnits"`
}

type cpscCountry struct {
	Country string `json:"Country"`
}

type cpscName struct {
	Name string `json:"Name"`
}

func cpscRecalls(doing, address string, body []byte) ([]cpscRecall, error) {
	switch head := bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))); {
	case bytes.HasPrefix(head, []byte("[")):
		var out []cpscRecall
		err := decodeReply(doing, address, body, &out)
		return out, err
	case bytes.HasPrefix(head, []byte("{")):
		return cpscFrom2013(doing, address, body)
	case bytes.HasPrefix(head, []byte("<?xml")), bytes.HasPrefix(head, []byte("<message")):
		return cpscFromXML(doing, address, body)
	case bytes.HasPrefix(head, []byte("RecallNo,")):
		return cpscFromTable(doing, address, head)
	}
	return nil, noRecords(doing, address, "a list of recalls", body)
}

// cpscOld makes a recall of what the older forms tell of one.
func cpscOld(number, date, address, maker, kind, product, hazard, country string) cpscRecall {
	return cpscRecall{
		Number: number, Date: date, URL: address, Title: joined(maker, product), Products: []cpscProduct{{Name: product, Type: kind}},
		Hazards: []cpscName{{hazard}}, Manufacturers: []cpscName{{maker}}, Countries: []cpscCountry{{country}},
	}
}

func cpscFrom2013(doing, address string, body []byte) ([]cpscRecall, error) {
	var answer struct {
		Success *struct {
			Results []struct {
				Number        string   `json:"recall_number"`
				Date          string   `json:"recall_date"`
				URL           string   `json:"recall_url"`
				Manufacturers []string `json:"manufacturers"`
				Types         []string `json:"product_types"`
				Descriptions  []string `json:"descriptions"`
				Hazards       []string `json:"hazards"`
				Countries     []string `json:"countries"`
			} `json:"results"`
		} `json:"success"`
	}
	if err := decodeReply(doing, address, body, &answer); err != nil {
		return nil, err
	}
	if answer.Success == nil {
		return nil, noRecords(doing, address, "success.results", body)
	}
	out := []cpscRecall{}
	list := func(s []string) string { return strings.Join(s, ", ") }
	for _, r := range answer.Success.Results {
		out = append(out, cpscOld(r.Number, r.Date, r.URL, list(r.Manufacturers), list(r.Types), list(r.Descriptions), list(r.Hazards), list(r.Countries)))
	}
	return out, nil
}

func cpscFromXML(doing, address string, body []byte) ([]cpscRecall, error) {
	var m struct {
		XMLName xml.Name `xml:"message"`
		Results *struct {
			Result []struct {
				Number  string `xml:"recallNo,attr"`
				URL     string `xml:"recallURL,attr"`
				Date    string `xml:"recDate,attr"`
				Maker   string `xml:"manufacturer,attr"`
				Type    string `xml:"type,attr"`
				Product string `xml:"prname,attr"`
				Hazard  string `xml:"hazard,attr"`
				Country string `xml:"country_mfg,attr"`
			} `xml:"result"`
		} `xml:"results"`
	}
	if err := xml.Unmarshal(body, &m); err != nil || m.Results == nil {
		return nil, noRecords(doing, address, "message > results", body)
	}
	out := []cpscRecall{}
	for _, r := range m.Results.Result {
		// Each of these has the same search page for an address, so the number has to tell them apart.
		out = append(out, cpscOld(r.Number, r.Date, "", r.Maker, r.Type, r.Product, r.Hazard, r.Country))
	}
	return merged(out), nil
}

// cpscFromTable reads the table: a recall has a row, and further rows that name further makers.
func cpscFromTable(doing, address string, body []byte) ([]cpscRecall, error) {
	rows := csv.NewReader(bytes.NewReader(body))
	rows.FieldsPerRecord = -1
	columns := map[string]int{}
	out := []cpscRecall{}
	for n := 0; ; n++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return merged(out), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", doing, address, err)
		}
		if n == 0 {
			for i, name := range row {
				columns[name] = i
			}
			continue
		}
		cell := func(name string) string {
			if i, ok := columns[name]; ok && i < len(row) {
				return row[i]
			}
			return ""
		}
		out = append(out, cpscOld(cell("RecallNo"), cell("Recdate"), "", cell("Manufacturer"), cell("Type"), cell("Prname"), cell("Hazard"), cell("Country_mfg")))
	}
}

// merged joins the rows of one recall, which the older forms write once for each product or maker.
func merged(rows []cpscRecall) []cpscRecall {
	out := []cpscRecall{}
	at := map[string]int{}
	for _, r := range rows {
		i, ok := at[r.Number]
		if !ok {
			at[r.Number] = len(out)
			out = append(out, r)
			continue
		}
		first := &out[i]
		first.Products, first.Hazards = append(first.Products, r.Products...), append(first.Hazards, r.Hazards...)
		first.Manufacturers, first.Countries = append(first.Manufacturers, r.Manufacturers...), append(first.Countries, r.Countries...)
	}
	return out
}

func cpscRead(p *fetch.Page) ([]corpus.Document, error) {
	recalls, err := cpscRecalls("read", p.Final, p.Bytes())
	if err != nil {
		return nil, err
	}
	out := make([]corpus.Document, 0, len(recalls))
	for i, r := range recalls {
		if r.Number == "" && r.ID == 0 && r.URL == "" {
			return nil, noRecords("read", p.Final, fmt.Sprintf("RecallNumber, RecallID or URL in recall %d", i), p.Bytes())
		}
		out = append(out, cpscDocument(p, r))
	}
	return out, nil
}

func cpscDocument(p *fetch.Page, r cpscRecall) corpus.Document {
	address := r.URL
	switch {
	case address != "":
	case r.ID != 0:
		address = fmt.Sprintf("%s%s?RecallID=%d&format=json", cpscBase, cpscPath, r.ID)
	default:
		address = fmt.Sprintf("%s%s?RecallNumber=%s&format=json", cpscBase, cpscPath, url.QueryEscape(r.Number))
	}
	named := func(list []cpscName) string {
		return strings.Join(distinct(mapped(mapNames(list), corpus.Space)), ", ")
	}
	var products, kinds, units, countries []string
	for _, x := range r.Products {
		products, kinds, units = append(products, corpus.Space(x.Name)), append(kinds, corpus.Space(x.Type)), append(units, corpus.Space(x.Units))
	}
	for _, c := range r.Countries {
		countries = append(countries, corpus.Space(c.Country))
	}
	list := func(s []string) string { return strings.Join(distinct(s), ", ") }
	d := record(p, address, r.Title, joined(
		sentence("On %s the Consumer Product Safety Commission announced the recall %s of %s.", spokenDay(r.Date), r.Number, list(products))),
		r.Description, joined(mapped(mapNames(r.Hazards), func(s string) string { return sentence("Hazard: %s", s) })...),
		joined(mapped(mapNames(r.Injuries), func(s string) string { return sentence("%s", s) })...), named(r.Remedies),
		joined(cmp.Or(sentence("The recall %s covers this number of units: %s.", r.Number, list(units)), sentence("Number of units: %s.", list(units))), sentence("The manufacturer is %s.", named(r.Manufacturers)), sentence("The importer is %s.", named(r.Importers)),
			sentence("They were sold at %s", named(r.Retailers)), sentence("They were made in %s.", list(countries))))
	d.Tags = append([]string{"recall"}, distinct(kinds)...)
	return dated(d, distinct([]string{r.Date})).Seal()
}

func mapNames(list []cpscName) []string {
	var out []string
	for _, n := range list {
		out = append(out, n.Name)
	}
	return out
}
