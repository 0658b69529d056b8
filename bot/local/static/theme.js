// Runs before the first paint: the chosen theme, else what the system prefers.
const chosen = localStorage.getItem("theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
