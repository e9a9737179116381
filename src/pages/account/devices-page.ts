import { card, type FormState, form, type Html, hidden, html, type Part, problem, time } from '../../http/html/document'
import type { Reader } from '../../http/html/reader'
import type { PublicTrustedDevice } from '../../trusted-devices/routes'

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

/** The browsers that need no second factor. */
export function trustedCard(reader: Reader, trusted: readonly PublicTrustedDevice[], formOf: Part): Html {
  return card(
    html`<h2>${reader.text('devices.trusted')}</h2>
<p class="hint">${reader.text('devices.trusted_lead')}</p>
<ul class="rows">${trusted.map((device) => trustedRow(reader, device, formOf))}</ul>
`,
  )
}

function trustedRow(reader: Reader, { id, name, lastUsedAt, endsAt, isCurrent }: PublicTrustedDevice, formOf: Part): Html {
  const device = name ?? reader.text('devices.unknown')
  const used = lastUsedAt === null ? null : html` · ${reader.text('devices.trusted_used')} ${time(reader, lastUsedAt)}`
  return html`<li class="row"><div><p><strong>${device}</strong> ${isCurrent ? html`<span class="tag">${reader.text('devices.trusted_current')}</span>` : null}</p>
<p class="hint">${reader.text('devices.trusted_until')} ${time(reader, endsAt)}${used}</p></div>${form({
    fields: [formOf, hidden('trusted', id)],
    button: reader.text('devices.untrust', { device }),
    look: 'second',
  })}</li>
`
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
