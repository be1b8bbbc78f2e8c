"""Adds up invoices exactly: decimal arithmetic, tax by rate, rounded where EN 16931 rounds."""

from collections import defaultdict
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Literal

from toolsrv import Example, Field, ToolError, module, tool

module(namespace="invoice", version="1.0.0")

# How many decimals a currency has, where these are not two: ISO 4217.
DECIMALS = {
    **dict.fromkeys(["BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF"], 0),
    **dict.fromkeys(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"], 3),
}

Amount = Annotated[Decimal, Field(ge=-1_000_000_000, le=1_000_000_000)]
Percent = Annotated[Decimal, Field(ge=0, le=100)]


@dataclass
class Line:
    """What is sold, at which price."""

    quantity: Amount
    price: Annotated[Amount, Field(description="Of one unit, before the discount.")]
    description: Annotated[str, Field(max_length=200)] = ""
    discount: Annotated[Percent, Field(description="Per cent of the line.")] = Decimal(0)
    tax: Annotated[Percent, Field(description="The rate in per cent.")] = Decimal(0)


@dataclass
class Tax:
    """What is owed at one rate."""

    rate: Decimal
    net: Decimal
    tax: Decimal


@dataclass
class Invoice:
    """The sums of an invoice. Each amount has the decimals of the currency."""

    lines: list[Decimal]
    taxes: list[Tax]
    net: Decimal
    tax: Decimal
    gross: Decimal
    due: Decimal
    currency: str


@tool(
    title="Add up an invoice",
    read_only=True,
    open_world=False,
    examples=[
        Example(
            {"lines": [{"quantity": "3", "price": "9.99", "tax": "19"}, {"quantity": "1.5", "price": "80", "discount": "10", "tax": "7"}]},
            result={
                "lines": ["29.97", "108.00"],
                "taxes": [{"rate": "7", "net": "108.00", "tax": "7.56"}, {"rate": "19", "net": "29.97", "tax": "5.69"}],
                "net": "137.97",
                "tax": "13.25",
                "gross": "151.22",
                "due": "151.22",
                "currency": "EUR",
            },
        )
    ],
)
def total(
    lines: Annotated[list[Line], Field(min_length=1, max_length=1000)],
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "EUR",
    prices: Literal["net", "gross"] = "net",
    paid: Amount = Decimal(0),
) -> Invoice:
    """Adds up an invoice: lines with discounts, tax by rate, net and gross, and what is still due.

    Pass amounts as strings, such as "9.99", so that they stay exact. Each line is rounded, then the tax of each rate, half up.

    Args:
        lines: What is sold.
        currency: Its three letters. They decide how many decimals amounts have.
        prices: Whether prices are without tax (net) or with it (gross).
        paid: What has been paid already.
    """
    unit = Decimal(1).scaleb(-DECIMALS.get(currency, 2))

    def rounded(amount: Decimal) -> Decimal:
        return amount.quantize(unit, ROUND_HALF_UP)

    amounts = [rounded(line.quantity * line.price * (100 - line.discount) / 100) for line in lines]
    by_rate: defaultdict[Decimal, Decimal] = defaultdict(Decimal)
    for line, amount in zip(lines, amounts):
        by_rate[line.tax] += amount
    taxes = []
    for rate, amount in sorted(by_rate.items()):
        if prices == "net":
            net, tax = amount, rounded(amount * rate / 100)
        else:
            net = rounded(amount * 100 / (100 + rate))
            tax = amount - net
        taxes.append(Tax(rate, rounded(net), rounded(tax)))
    net = sum((t.net for t in taxes), rounded(Decimal(0)))
    tax = sum((t.tax for t in taxes), rounded(Decimal(0)))
    if paid != rounded(paid):
        raise ToolError(f"{paid} is not an amount in {currency}: it has {-unit.as_tuple().exponent} decimals at most.", code="too_precise")
    return Invoice(amounts, taxes, net, tax, net + tax, rounded(net + tax - paid), currency)
