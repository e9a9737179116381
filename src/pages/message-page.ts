import { card, type Html, html, linkButton } from '../http/html/document'

export function messagePage({ title, lead, go }: { title: string; lead: string; go?: { href: string; label: string } }): Html {
  return card(
    html`<h1>${title}</h1>
<p class="lead">${lead}</p>
`,
    go ? linkButton(go.href, go.label) : null,
  )
}
