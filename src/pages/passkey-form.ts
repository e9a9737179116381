import { type Html, html } from '../http/html'
import { form, hidden, type Part } from './elements'
import type { Reader } from './reader'

/** What the page's script asks the browser for, and where the answer goes. */
export interface PasskeyForm {
  readonly action: string
  /** Of `navigator.credentials.get()`, with the token that belongs to them. */
  readonly options: object
  readonly challenge: string
  readonly fields?: readonly Part[]
  readonly button: string
  readonly look?: 'second'
  /** Also offers passkeys in the field whose `autocomplete` says `webauthn`. */
  readonly isConditional?: boolean
}

/** A form that the page's script fills by a passkey. It is hidden until the script finds that this browser has passkeys. */
export function passkeyForm(reader: Reader, { action, options, challenge, fields = [], button, look, isConditional }: PasskeyForm): Html {
  const attributes = html` data-passkey="get" data-options="${JSON.stringify(options)}"${isConditional ? html` data-conditional` : null} hidden`
  return html`${form({
    action,
    attributes,
    fields: [...fields, hidden('credential', ''), hidden('challenge_token', challenge)],
    button,
    ...(look && { look }),
  })}${needsScript(reader)}`
}

/** For who has no script. */
export function needsScript(reader: Reader): Html {
  return html`<noscript><p class="hint">${reader.text('passkey.needs_script')}</p></noscript>
`
}
