// An option is a radio button, as on the original's pages: choosing it opens the page with the option.
for (const option of document.querySelectorAll('input[type="radio"]')) {
  option.addEventListener("click", () => { window.location.href = option.dataset.url; });
}
