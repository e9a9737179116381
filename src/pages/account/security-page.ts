import { card, field, form, linkButton, type Part, problem, time } from '../../http/html/elements'
import type { FormState } from '../../http/html/form-state'
import { type Html, html } from '../../http/html/html'
import type { Reader } from '../../http/html/reader'
import { type ListedPasskey, passkeysCard } from './passkeys-card'

export interface SecurityView {
  /** Null if second factors are off. `since` is null if the person has no second factor. */
  readonly factor: { readonly since: Date | null } | null
  /** Null if passkeys are off. */
  readonly passkeys: readonly ListedPasskey[] | null
}

/** Shows the passkeys and the second factor, with their actions. */
export function securityPage(reader: Reader, { factor, passkeys }: SecurityView): Html {
  const title = html`<h1>${reader.text('security.title')}</h1>
`
  return html`${passkeys && passkeysCard(reader, passkeys, title)}${factor && factorCard(reader, factor.since, passkeys === null ? title : null)}`
}

function factorCard(reader: Reader, since: Date | null, title: Part): Html {
  return card(
    title,
    html`<h2>${reader.text('security.app')} ${since === null ? null : html`<span class="tag">${reader.text('security.on')}</span>`}</h2>
<p class="hint">${since === null ? reader.text('security.app_lead') : html`${reader.text('security.since')} ${time(reader, since)}`}</p>
`,
    linkButton(
      reader.href('/account/security/authenticator'),
      reader.text(since === null ? 'security.turn_on' : 'security.replace'),
      since === null ? 'first' : 'second',
    ),
    since === null
      ? null
      : html`<h2>${reader.text('security.codes')}</h2>
<p class="hint">${reader.text('security.codes_hint')}</p>
${linkButton(reader.href('/account/security/recovery-codes'), reader.text('security.new_codes'), 'second')}
<h2>${reader.text('security.off_title')}</h2>
<p class="hint">${reader.text('security.off_hint')}</p>
${linkButton(reader.href('/account/security/turn-off'), reader.text('security.turn_off'), 'second')}`,
  )
}

/** Returns the page before the QR code. To replace a second factor, the page asks for a code of the current factor. */
export function beginFactorPage(reader: Reader, state: FormState, { isReplacing, formOf }: { isReplacing: boolean; formOf: Part }): Html {
  return card(
    html`<h1>${reader.text(isReplacing ? 'security.replace' : 'security.turn_on')}</h1>
<p class="lead">${reader.text(isReplacing ? 'security.replace_lead' : 'security.begin_lead')}</p>
`,
    problem(state),
    form({
      fields: [formOf, isReplacing ? codeField(reader, state, 'security.present_code') : null],
      button: reader.text('security.begin_button'),
    }),
    back(reader),
  )
}

export interface EnrolmentView {
  readonly secret: string
  readonly qrSvg: string
  /** The `otpauth:` link, for an app on the same phone. */
  readonly provisioningUri: string
  /** A hidden field that the form sends back. */
  readonly sealed: Part
  readonly formOf: Part
}

/** Shows the QR code, the secret as text, and the field for the first code. */
export function enrolmentPage(reader: Reader, state: FormState, { secret, qrSvg, provisioningUri, sealed, formOf }: EnrolmentView): Html {
  const picture = `data:image/svg+xml,${qrSvg.replace(/[<>"#%]/g, encodeURIComponent)}`
  return card(
    html`<h1>${reader.text('security.scan_title')}</h1>
<p class="lead">${reader.text('security.scan_lead')}</p>
<img class="qr" src="${picture}" alt="${reader.text('security.qr_alt')}" width="208" height="208">
<p class="phone"><a class="button second" href="${provisioningUri}" referrerpolicy="no-referrer">${reader.text('security.open_app')}</a></p>
<p class="hint">${reader.text('security.type_key')}</p>
<p class="key">${inGroups(secret)}</p>
`,
    problem(state),
    form({ fields: [formOf, sealed, codeField(reader, state, 'security.first_code')], button: reader.text('security.confirm_button') }),
    back(reader),
  )
}

/** Shows the recovery codes. A person sees the codes only once. */
export function recoveryCodesPage(reader: Reader, codes: readonly string[], { isNewFactor }: { isNewFactor: boolean }): Html {
  const file = `data:text/plain;charset=utf-8,${encodeURIComponent(`${codes.join('\r\n')}\r\n`)}`
  return card(
    html`<h1>${reader.text('security.codes')}</h1>
<p class="notice" role="status">${reader.text(isNewFactor ? 'security.factor_on' : 'security.codes_made')}</p>
<p class="lead">${reader.text('security.codes_lead')}</p>
<ul class="codes">${codes.map((code) => html`<li>${code}</li>`)}</ul>
<div class="links"><button type="button" class="plain" data-copy=".codes" data-copied="${reader.text('security.copied')}" hidden>${reader.text('security.copy')}</button>
<a href="${file}" download="recovery-codes.txt">${reader.text('security.download')}</a>
<button type="button" class="plain" data-print hidden>${reader.text('security.print')}</button></div>
`,
    linkButton(reader.href('/account/security'), reader.text('security.kept')),
  )
}

export function newCodesPage(reader: Reader, state: FormState, formOf: Part): Html {
  return card(
    html`<h1>${reader.text('security.new_codes')}</h1>
<p class="lead">${reader.text('security.new_codes_lead')}</p>
`,
    problem(state),
    form({ fields: [formOf, codeField(reader, state, 'security.present_code')], button: reader.text('security.new_codes') }),
    back(reader),
  )
}

export function turnOffPage(reader: Reader, state: FormState, { asksPassword, formOf }: { asksPassword: boolean; formOf: Part }): Html {
  return card(
    html`<h1>${reader.text('security.off_title')}</h1>
<p class="lead">${reader.text('security.off_lead')}</p>
`,
    problem(state),
    form({
      fields: [
        formOf,
        asksPassword
          ? field(reader, state, {
              name: 'password',
              label: reader.text('field.password'),
              type: 'password',
              autocomplete: 'current-password',
              isFirst: true,
            })
          : null,
        codeField(reader, state, 'security.present_code', !asksPassword),
      ],
      button: reader.text('security.turn_off'),
      look: 'danger',
    }),
    back(reader),
  )
}

function codeField(reader: Reader, state: FormState, label: 'security.present_code' | 'security.first_code', isFirst = true): Html {
  return field(reader, state, { name: 'code', label: reader.text(label), autocomplete: 'one-time-code', isCode: true, isFirst })
}

function back(reader: Reader): Html {
  return html`<p class="below"><a href="${reader.href('/account/security')}">${reader.text('security.back')}</a></p>
`
}

/** Returns the secret in groups of four characters, because groups are easier to copy. */
function inGroups(secret: string): string {
  return secret.replace(/(.{4})(?=.)/g, '$1 ')
}
