import { form, type Html, hidden, html, type Part } from './document'
import type { Reader } from './reader'

/** For the page's script: the options for the browser, and the form that sends its response. */
interface PasskeyForm {
  /** Default: the address of the page. */
  readonly action?: string
  /** Of `navigator.credentials.get()`. `challenge` is their challenge token. */
  readonly options: object
  readonly challenge: string
  readonly fields?: readonly Part[]
  readonly button: string
  readonly look?: 'second'
  /** The browser also offers passkeys in the field with the `autocomplete` value `webauthn`. */
  readonly isConditional?: boolean
  /** Where the script gets new options before these expire. */
  readonly renew?: string
  /** False: another form of the page says that passkeys need a script. Default true. */
  readonly saysScript?: boolean
}

/** Hidden until the page's script finds that the browser supports passkeys. */
export function passkeyForm(
  reader: Reader,
  { action, options, challenge, fields = [], button, look, isConditional, renew, saysScript = true }: PasskeyForm,
): Html {
  const attributes = html` data-passkey="get" data-options="${JSON.stringify(options)}"${isConditional ? html` data-conditional` : null}${renew === undefined ? null : html` data-renew="${renew}"`} hidden`
  return html`${form({
    ...(action !== undefined && { action }),
    attributes,
    fields: [...fields, hidden('credential', ''), hidden('challenge_token', challenge)],
    button,
    ...(look && { look }),
  })}${saysScript ? needsScript(reader) : null}`
}

export function needsScript(reader: Reader): Html {
  return html`<noscript><p class="hint">${reader.text('passkey.needs_script')}</p></noscript>
`
}

/** If the JSON is malformed, the credential is an empty object. */
export function passkeyOfForm({ credential = '', challenge_token: challenge = '' }: Readonly<Record<string, string>>): {
  credential: object
  challenge: string
} {
  return { credential: readObject(credential), challenge }
}

function readObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
  } catch {
    return {}
  }
}
