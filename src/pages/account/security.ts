import type { AuthContext } from '../../context'
import { openText, sealText } from '../../core/encryption'
import type { TextKey } from '../../core/texts/phrase-book'
import {
  card,
  emptyForm,
  type FormState,
  field,
  form,
  type Html,
  hidden,
  html,
  linkButton,
  type Part,
  problem,
  time,
} from '../../http/html/document'
import type { Reader } from '../../http/html/reader'
import { listPasskeys } from '../../passkeys/manage'
import { isPendingSecret } from '../../second-factor/confirm'
import { forAuthenticatorApp } from '../../second-factor/enroll'
import type { SessionOfRequest } from '../../sessions/reauthentication/fresh-session'
import { takesPassword } from '../../sessions/reauthentication/methods'
import type { AccountPage } from '../account-page'
import type { AccountVisit } from '../account-visit'
import { FormFault, requireFields } from '../form-fault'
import { Elsewhere } from '../page-lines'
import type { Fields } from '../page-site'
import { type ListedPasskey, passkeysCard } from './passkeys'

const path = '/account/security'
const sentences: Readonly<Record<string, TextKey>> = {
  EMAIL_NOT_VERIFIED: 'account.verify_first',
  UNAUTHORIZED: 'password.wrong',
  MFA_CODE_INVALID: 'mfa.wrong',
}
const faultFields = { MFA_CODE_INVALID: 'code' }
const isThere = ({ settings }: AuthContext) => settings.mfaEnabled

/** A request for the page shows no secret and creates none. */
export const security: AccountPage = {
  page: 'security',
  path,
  title: 'security.title',
  navigation: 'security.nav',
  isThere: ({ settings }) => settings.mfaEnabled || settings.passkeysEnabled,
  needsFresh: true,
  async show({ ctx, reader, person, session: { user } }) {
    const passkeys = ctx.settings.passkeysEnabled ? await listPasskeys(ctx, person.id) : null
    return securityPage(reader, { factor: ctx.settings.mfaEnabled ? { since: user.totpEnabledAt } : null, passkeys })
  },
}

/** First the QR code, then the first code, then the recovery codes. */
export const authenticator: AccountPage = {
  page: 'authenticator',
  path: `${path}/authenticator`,
  title: 'security.app',
  sentences,
  faultFields,
  isThere,
  // Who began in a fresh session can finish when it is no longer fresh.
  needsFresh: (visit, fields) => begunIn(visit, fields) === null,
  show(visit, state) {
    const begun = begunIn(visit, state.values)
    if (begun) return enrolment(visit, begun, state)
    return beginFactorPage(visit.reader, state, { isReplacing: visit.person.mfaEnabled, formOf: visit.formOf })
  },
  async post(visit, fields) {
    const { ctx, session } = visit
    const { code = '' } = fields
    if (fields['enrolment'] === undefined) return begin(visit, code)
    const begun = begunIn(visit, fields)
    if (!begun) throw new FormFault({ form: 'security.too_late' }, { keepsValues: false })
    // If the person began again in another tab, this secret is no longer valid.
    if (!(await isPendingSecret(ctx, session.user, begun.secret)))
      throw new FormFault({ form: 'security.begun_again' }, { keepsValues: false })
    requireFields({ code }, 'code')
    await visit.ask.confirmTotp({ code })
    return recoveryCodesPage(visit.reader, begun.recoveryCodes, { isNewFactor: true, ...keptLink(visit.reader) })
  },
}

function begunIn({ ctx, session }: AccountVisit, { enrolment: sealed }: Fields): PageEnrolment | null {
  return sealed === undefined ? null : openEnrolment(ctx, purposeOf(session), sealed)
}

async function begin(visit: AccountVisit, code: string) {
  if (visit.person.mfaEnabled) requireFields({ code }, 'code')
  const { secret, recoveryCodes } = await visit.ask.enrollTotp(visit.person.mfaEnabled ? { code } : {})
  return enrolment(visit, { secret, recoveryCodes }, emptyForm)
}

function enrolment({ ctx, reader, session, person, formOf }: AccountVisit, begun: PageEnrolment, state = emptyForm) {
  const { qrSvg, provisioningUri } = forAuthenticatorApp(ctx, person.email, begun.secret)
  const sealed = hidden('enrolment', sealEnrolment(ctx, purposeOf(session), begun))
  return enrolmentPage(reader, state, { secret: begun.secret, qrSvg, provisioningUri, sealed, formOf })
}

export const recoveryCodes: AccountPage = {
  page: 'recoveryCodes',
  path: `${path}/recovery-codes`,
  title: 'security.codes',
  sentences,
  faultFields,
  isThere,
  needsFresh: true,
  show: (visit, state) => newCodesPage(visit.reader, state, requireFactor(visit).formOf),
  async post({ ask, reader }, fields) {
    requireFields(fields, 'code')
    const codes = await ask.regenerateRecoveryCodes({ code: fields['code'] ?? '' })
    return recoveryCodesPage(reader, codes, { isNewFactor: false, ...keptLink(reader) })
  },
}

export const turnOffFactor: AccountPage = {
  page: 'turnOffFactor',
  path: `${path}/turn-off`,
  title: 'security.off_title',
  sentences,
  faultFields: { ...faultFields, UNAUTHORIZED: 'password' },
  isThere,
  needsFresh: true,
  show(visit, state) {
    const { ctx, reader, session, formOf } = requireFactor(visit)
    return turnOffPage(reader, state, { asksPassword: takesPassword(ctx, session.user), formOf })
  },
  async post({ ctx, ask, session }, fields) {
    const asksPassword = takesPassword(ctx, session.user)
    const { password = '', code = '' } = fields
    requireFields(fields, ...(asksPassword ? ['password'] : []), 'code')
    await ask.disableTotp({ code, ...(asksPassword && { password }) })
    return { notice: 'factor_off', to: path }
  },
}

/** @throws Elsewhere if the person has no second factor */
function requireFactor(visit: AccountVisit): AccountVisit {
  if (!visit.person.mfaEnabled) throw new Elsewhere({ to: visit.reader.href(path) })
  return visit
}

interface SecurityView {
  /** Null if second factors are off. `since` is null if the person has no second factor. */
  readonly factor: { readonly since: Date | null } | null
  /** Null if passkeys are off. */
  readonly passkeys: readonly ListedPasskey[] | null
}

function securityPage(reader: Reader, { factor, passkeys }: SecurityView): Html {
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

/** To replace a second factor, asks for a code of the current one. */
function beginFactorPage(reader: Reader, state: FormState, { isReplacing, formOf }: { isReplacing: boolean; formOf: Part }): Html {
  return card(
    html`<h1>${reader.text(isReplacing ? 'security.replace' : 'security.turn_on')}</h1>
<p class="lead">${reader.text(isReplacing ? 'security.replace_lead' : 'security.begin_lead')}</p>
`,
    problem(state),
    form({
      fields: [formOf, isReplacing ? codeField(reader, state, 'security.present_code') : null],
      button: reader.text('security.begin_button'),
    }),
    backToSecurity(reader),
  )
}

interface EnrolmentView {
  readonly secret: string
  readonly qrSvg: string
  /** For an app on the same phone. */
  readonly provisioningUri: string
  /** A hidden field that the form sends back. */
  readonly sealed: Part
  readonly formOf: Part
  /** Default: the page itself. */
  readonly action?: string
  /** Default: to the page of the account. */
  readonly back?: Part
}

export function enrolmentPage(reader: Reader, state: FormState, view: EnrolmentView): Html {
  const { secret, qrSvg, provisioningUri, sealed, formOf, action, back = backToSecurity(reader) } = view
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
    form({
      ...(action !== undefined && { action }),
      fields: [formOf, sealed, codeField(reader, state, 'security.first_code')],
      button: reader.text('security.confirm_button'),
    }),
    back,
  )
}

interface RecoveryCodesView {
  readonly isNewFactor: boolean
  /** The link after the codes. */
  readonly to: string
  readonly label: string
}

function keptLink(reader: Reader): Pick<RecoveryCodesView, 'to' | 'label'> {
  return { to: reader.href('/account/security'), label: reader.text('security.kept') }
}

export function recoveryCodesPage(reader: Reader, codes: readonly string[], { isNewFactor, to, label }: RecoveryCodesView): Html {
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
    linkButton(to, label),
  )
}

function newCodesPage(reader: Reader, state: FormState, formOf: Part): Html {
  return card(
    html`<h1>${reader.text('security.new_codes')}</h1>
<p class="lead">${reader.text('security.new_codes_lead')}</p>
`,
    problem(state),
    form({ fields: [formOf, codeField(reader, state, 'security.present_code')], button: reader.text('security.new_codes') }),
    backToSecurity(reader),
  )
}

function turnOffPage(reader: Reader, state: FormState, { asksPassword, formOf }: { asksPassword: boolean; formOf: Part }): Html {
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
    backToSecurity(reader),
  )
}

function codeField(reader: Reader, state: FormState, label: 'security.present_code' | 'security.first_code', isFirst = true): Html {
  return field(reader, state, { name: 'code', label: reader.text(label), autocomplete: 'one-time-code', isCode: true, isFirst })
}

function backToSecurity(reader: Reader): Html {
  return html`<p class="below"><a href="${reader.href('/account/security')}">${reader.text('security.back')}</a></p>
`
}

/** Groups of four characters are easier to copy. */
function inGroups(secret: string): string {
  return secret.replace(/(.{4})(?=.)/g, '$1 ')
}

/** If the person mistypes the code, the page shows the same secret again. */
export interface PageEnrolment {
  readonly secret: string
  readonly recoveryCodes: readonly string[]
}

/** Seconds, as for a pending second factor. */
const lifeSeconds = 900

/** For a hidden field. Valid for 15 minutes, and only for this purpose. */
export function sealEnrolment(ctx: AuthContext, purpose: string, { secret, recoveryCodes }: PageEnrolment): string {
  return sealText(keysOf(ctx), purpose, JSON.stringify([ctx.now().getTime() + lifeSeconds * 1000, secret, recoveryCodes]))
}

/** Null for an expired text, a text for another purpose, and a text that this server did not encrypt. */
export function openEnrolment(ctx: AuthContext, purpose: string, sealed: string): PageEnrolment | null {
  const text = openText(keysOf(ctx), purpose, sealed)
  if (text === null) return null
  const [end, secret, recoveryCodes] = JSON.parse(text) as [number, string, string[]] // `sealEnrolment` wrote the JSON
  return end > ctx.now().getTime() ? { secret, recoveryCodes } : null
}

function purposeOf({ user, session }: SessionOfRequest): string {
  return `enrolment of ${user.id} in ${session?.id ?? 'no session'}`
}

function keysOf({ keys }: AuthContext): Buffer[] {
  return keys['enrolment-page'].map((key) => key.export())
}
