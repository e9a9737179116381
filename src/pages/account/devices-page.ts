import { card, type FormState, form, type Html, hidden, html, type Part, problem, time } from '../../http/html/document'
import type { Reader } from '../../http/html/reader'

export interface ListedDevice {
  readonly id: string
  /** Of the browser and the operating system. */
  readonly name: string
  readonly ip: string | null
  readonly signedInAt: Date
  readonly lastSeenAt: Date
  /** How the person logged in. */
  readonly method: string
  readonly isCurrent: boolean
}

export function devicesPage(
  reader: Reader,
  state: FormState,
  { devices, formOf }: { devices: readonly ListedDevice[]; formOf: Part },
): Html {
  const others = devices.filter(({ isCurrent }) => !isCurrent)
  return card(
    html`<h1>${reader.text('devices.title')}</h1>
<p class="lead">${reader.text('devices.lead')}</p>
`,
    problem(state),
    html`<ul class="rows">${devices.map((device) => row(reader, device, formOf))}</ul>
`,
    others.length < 2
      ? null
      : form({ fields: [formOf, hidden('action', 'others')], button: reader.text('devices.end_others'), look: 'danger' }),
  )
}

/** After a credential was removed. Posts to the page of the devices. */
export function endOthersCard(reader: Reader, { action, formOf }: { action: string; formOf: Part }): Html {
  return card(
    html`<p class="hint">${reader.text('devices.after_removal')}</p>
`,
    form({ action, fields: [formOf, hidden('action', 'others')], button: reader.text('devices.end_everywhere_else'), look: 'danger' }),
  )
}

function row(reader: Reader, device: ListedDevice, formOf: Part): Html {
  const { id, name, ip, signedInAt, lastSeenAt, method, isCurrent } = device
  return html`<li class="row"><div><p><strong>${name}</strong> ${isCurrent ? html`<span class="tag">${reader.text('devices.current')}</span>` : null}</p>
<p class="hint">${reader.text('devices.last_seen')} ${time(reader, lastSeenAt)}${ip === null ? null : html` · ${ip}`}</p>
<p class="hint">${reader.text('devices.signed_in')} ${time(reader, signedInAt)} · ${method}</p></div>${
    isCurrent
      ? null
      : form({ fields: [formOf, hidden('session', id)], button: reader.text('devices.end', { device: name }), look: 'second' })
  }</li>
`
}
