# A final newline goes, another comes; a byte-order mark comes and another goes.
start
printf 'one\ntwo\n' >goes
printf 'one\ntwo' >comes
printf 'one\n' >mark
printf '\xef\xbb\xbfone\n' >unmark
base
printf 'one\ntwo' >goes
printf 'one\ntwo\n' >comes
by P1
printf '\xef\xbb\xbfone\n' >mark
printf 'one\n' >unmark
by P2
#= P1 comes -2 "two" in #final-newline
#= P1 comes +2 "two\n" in #final-newline
#= P1 goes -2 "two\n" in #final-newline
#= P1 goes +2 "two" in #final-newline
#= P2 mark -1 "one\n" in #bom
#= P2 mark +1 "\u{feff}one\n" in #invisible #bom
#= P2 unmark -1 "\u{feff}one\n" in #invisible #bom
#= P2 unmark +1 "one\n" in #bom
