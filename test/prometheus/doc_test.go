// Package prometheus_test has the real Prometheus scrape the real server: every alert of the chart is made to fire by the fault that it is for, and
// every query of the dashboard finds something. It needs the programs prometheus and promtool; make setup-prometheus installs them.
package prometheus_test
