// Runs before the first paint: the chosen theme, else what the system prefers. A cookie, for it counts on every port.
const chosen = /(?:^|; )theme=(light|dark)/.exec(document.cookie);
if (chosen) document.documentElement.dataset.theme = chosen[1];
