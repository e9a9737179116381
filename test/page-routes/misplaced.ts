/** For a page: what is wider than the window, sticks out of its card, is cut off, or lies over something else. */
export const misplaced = `(() => {
  const found = []
  const wider = document.documentElement.scrollWidth - innerWidth
  if (wider > 0) found.push('the page is wider than the window by ' + wider + ' px')

  const isShown = (element) => element.checkVisibility() && !element.closest('.skip')
  const boxOf = (element, says, { left, right, top, bottom }) => ({ element, says, left, right, top, bottom })
  const boxes = []
  for (const element of document.querySelectorAll('input:not([type=hidden]), button, .button, img')) {
    if (!isShown(element)) continue
    boxes.push(boxOf(element, element.outerHTML.slice(0, 90), element.getBoundingClientRect()))
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const element = text.parentElement
    if (text.data.trim() === '' || !isShown(element)) continue
    // An address that is too long for the top of the page ends in an ellipsis, and stands in full below.
    if (getComputedStyle(element).textOverflow === 'ellipsis') continue
    const range = document.createRange()
    range.selectNodeContents(text)
    for (const rectangle of range.getClientRects()) boxes.push(boxOf(element, text.data.trim(), rectangle))
  }

  for (const { element, says, left, right } of boxes) {
    if (element.closest('nav.pages ul')) continue // one line that scrolls
    const card = element.closest('.card, .button, button')?.getBoundingClientRect() ?? { left: 0, right: innerWidth }
    if (left < card.left - 1 || right > card.right + 1) found.push('sticks out: ' + says)
    for (let outer = element; outer; outer = outer.parentElement) {
      const isCut = outer.scrollWidth > outer.clientWidth + 1 && getComputedStyle(outer).overflowX !== 'visible'
      if (isCut && !outer.matches('input, html, body')) found.push('cut off: ' + says)
    }
  }
  for (const [index, one] of boxes.entries()) {
    for (const other of boxes.slice(index + 1)) {
      if (one.element.contains(other.element) || other.element.contains(one.element)) continue
      const width = Math.min(one.right, other.right) - Math.max(one.left, other.left)
      const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top)
      if (width > 1 && height > 4) found.push(one.says + ' lies over ' + other.says)
    }
  }
  return found
})()`
