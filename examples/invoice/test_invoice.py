from decimal import Decimal

import invoice
import pytest
from toolsrv import ToolError, testing


def test_examples():
    testing.examples(invoice)


@pytest.mark.parametrize(
    "lines, options, want",
    [
        pytest.param([("1", "0.005")], {}, {"gross": "0.01"}, id="half goes up"),
        pytest.param([("-1", "0.005")], {}, {"gross": "-0.01"}, id="away from zero"),
        pytest.param([("3", "0.1")], {}, {"gross": "0.30"}, id="what binary fractions get wrong"),
        pytest.param(
            [("1", "119", "0", "19")], {"prices": "gross"}, {"net": "100.00", "tax": "19.00", "gross": "119.00"}, id="tax is within"
        ),
        pytest.param(
            [("1", "0.99", "0", "7")] * 3,
            {"prices": "gross"},
            {"net": "2.78", "tax": "0.19", "gross": "2.97"},
            id="tax of the sum, not of lines",
        ),
        pytest.param([("1", "1000.4", "0", "10")], {"currency": "JPY"}, {"net": "1000", "tax": "100", "gross": "1100"}, id="no decimals"),
        pytest.param([("1", "1.2345")], {"currency": "KWD"}, {"gross": "1.235"}, id="three decimals"),
        pytest.param([("2", "50", "100")], {}, {"gross": "0.00"}, id="a gift"),
        pytest.param([("1", "50")], {"paid": "60"}, {"due": "-10.00"}, id="paid too much"),
        pytest.param([("1000000000", "1000000000")], {}, {"gross": "1000000000000000000.00"}, id="the largest"),
    ],
)
def test_total(lines, options, want):
    names = ["quantity", "price", "discount", "tax"]
    got = testing.call(invoice.total, {"lines": [dict(zip(names, line)) for line in lines], **options})
    assert {name: got[name] for name in want} == want


def test_as_a_function():
    got = invoice.total([invoice.Line(Decimal(2), Decimal("9.99"), tax=Decimal(19))])
    assert (got.net, got.tax, got.gross) == (Decimal("19.98"), Decimal("3.80"), Decimal("23.78"))


def test_too_precise():
    with pytest.raises(ToolError) as e:
        testing.call(invoice.total, {"lines": [{"quantity": "1", "price": "1"}], "paid": "0.001"})
    assert e.value.code == "too_precise"
