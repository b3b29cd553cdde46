"""The words of requests: some for every day, others held out for tests.

* `WORDINGS`, `HELD_OUT` - by kind of request, its wordings
"""

from __future__ import annotations

WORDINGS: dict[str, tuple[str, str, str]] = {
    "cancel": (
        "Please cancel {order}.",
        "I no longer need {order}. Can you cancel it?",
        "I would like to call off {order}.",
    ),
    "return": (
        "I have changed my mind about the {item} from {order} and want to return it for a refund.",
        "The {item} from {order} is not for me after all. Please take it back and refund it.",
        "I want to send back the {item} of {order}, since I do not want it any more, and get my money.",
    ),
    "return_damaged": (
        "The {item} from {order} arrived damaged. I want to return it for a refund.",
        "The {item} of {order} was broken when it came. Please take it back and refund it.",
        "There is damage to the {item} from {order}. I would like my money back for it.",
    ),
    "return_two": (
        "I have changed my mind about the {item} and the {other} from {order} and want to return both for a refund.",
        "Neither the {item} nor the {other} of {order} is for me after all. Please take them back and refund both.",
        "I want to send back the {item} and the {other} from {order}, which I no longer want, and get my money.",
    ),
    "exchange": (
        "The {item} from {order} does not fit. Please exchange it for the {product}.",
        "I need the {product} in place of the {item} from {order}, which has the wrong size.",
        "The size of the {item} of {order} is wrong. Can I have the {product} for it?",
    ),
    "address": (
        "I have moved. My new address is {street} in {city}.",
        "Please change my address to {street}, {city}.",
        "From now on I live in {city}, {street}. Please update my account.",
    ),
    "redirect": (
        "Please deliver {order} to {street} in {city} instead.",
        "I will not be at home. Can {order} go to {street}, {city}?",
        "Can you send {order} to {city}, {street}? My account should stay as it is.",
    ),
    "other_card": (
        "I have returned the {item} from {order} and wait for the refund. Please pay it to my {card}.",
        "The {item} of {order} is back with you. I want the money on my {card}.",
        "My refund for the {item} from {order}, which you have received, should go to my {card}.",
    ),
    "split_delivery": (
        "Please deliver the {item} of {order} separately on {day}, and the rest as planned.",
        "Can the {item} from {order} come on its own on {day}?",
        "I need the {item} of {order} later than the rest: on {day}.",
    ),
    "price_match": (
        "The {item} that I bought with {order} costs less now. Please refund the difference.",
        "I have seen the {item} from {order} at a lower price in your shop. Can I have the difference back?",
        "You have made the {item} cheaper since {order}. I would like what I paid too much.",
    ),
    "lost": (
        "The parcel of {order} has never arrived. I want my money back.",
        "I still wait for {order}, it must be lost. Please refund it.",
        "{order} did not reach me. I think the parcel is lost, and want a refund.",
    ),
    "charged_twice": (
        "I was charged twice for {order}. Please refund one payment.",
        "There are two payments for {order} on my card. I want one of them back.",
        "You have taken the money for {order} two times.",
    ),
    "missing_item": (
        "The {item} was missing from the parcel of {order}. Please send it.",
        "I did not find the {item} in the parcel of {order}. Can you send it again?",
        "{order} came without the {item}, which I still want.",
    ),
    "cancel_and_return": (
        "Please cancel {second}. And I have changed my mind about the {item} from {order}: I want to return it.",
        "Two things: call off {second}, and take back the {item} of {order}, which I no longer want.",
        "I want to return the {item} from {order}, which is not for me after all, and {second} should be cancelled.",
    ),
}

HELD_OUT: dict[str, tuple[str, str]] = {
    "cancel": ("Stop {order}, please.", "{order} was a mistake, I do not want it to be sent."),
    "return": (
        "I am sending the {item} back that came with {order}; it turned out I have no use for it. Refund me, please.",
        "No use for the {item} ({order}) after all. How do I get my money for it?",
    ),
    "return_damaged": (
        "Your carrier has ruined the {item} that came with {order}. I expect a refund.",
        "Opened {order} and the {item} was in pieces. Money back, please.",
    ),
    "return_two": (
        "Both the {item} and the {other} ({order}) can go back, I have no use for them. Refund me, please.",
        "No use for two things in {order}, the {item} and the {other}. How do I get my money for them?",
    ),
    "exchange": (
        "Wrong size: the {item} of {order}. I will take the {product} for it.",
        "Swap the {item} that came with {order} for the {product}, please, it is too small.",
    ),
    "address": ("New home: {street}, {city}.", "You have an old address for me. It should be {street}, {city}."),
    "redirect": (
        "{order} should rather go to my sister at {street}, {city}.",
        "Only for {order}: deliver to {street} in {city}, please.",
    ),
    "other_card": (
        "You have the {item} of {order} back, but my money is still with you. I want it on the {card}.",
        "Refund the {item} ({order}), which I sent back, to the {card}, please.",
    ),
    "split_delivery": (
        "Hold back the {item} of {order} and deliver it on {day}.",
        "{day} would suit me for the {item} of {order}; send the others when they are ready.",
    ),
    "price_match": (
        "A few days after {order} the {item} is cheaper. You match prices, do you not?",
        "I overpaid for the {item} in {order}, as your new price shows.",
    ),
    "lost": ("Where is {order}? I give up: money back, please.", "The carrier has lost {order}. Refund it."),
    "charged_twice": ("Why do I pay double for {order}?", "One payment too many for {order}: send it back."),
    "missing_item": (
        "You forgot the {item} of {order}.",
        "I unpacked {order}: no {item}. I would like to have it, please.",
    ),
    "cancel_and_return": (
        "Stop {second}, please, and refund me the {item} of {order}, for which I have no use; I send it back.",
        "{second} was a mistake, do not send it. The {item} from {order} goes back too, no use for it.",
    ),
}
