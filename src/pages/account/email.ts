import { hasMailedCodes } from '../../accounts/mailed-codes/code-request'
import type { AuthContext } from '../../context'
import { card, type FormState, field, form, type Html, hidden, html, type Part, problem } from '../../http/html/document'
import type { Reader } from '../../http/html/reader'
import type { UserRecord } from '../../store/auth-store'
import type { AccountPage } from '../account-page'
import { awaitMail } from '../check-mail'
import { requireFields } from '../form-fault'

export const email: AccountPage = {
  page: 'email',
  path: '/account/email',
  title: 'email.title',
  navigation: 'email.nav',
  isThere: ({ mailQueue }) => mailQueue !== null,
  needsFresh: true,
  show({ ctx, reader, session: { user }, formOf }, state) {
    const { localAccountsEnabled: canChange } = ctx.settings
    return emailPage(reader, state, { email: user.email, isVerified: isVerified(ctx, user), canChange, formOf })
  },
  async post(entered, fields) {
    const { ctx, ask, session } = entered
    const waits = hasMailedCodes(ctx)
    if (fields['action'] === 'verify') {
      await ask.requestEmailVerification()
      if (!waits) return { notice: 'verification_sent' }
      awaitMail(entered, { email: session.user.email, from: 'emailVerification' })
      return { to: '/check-mail' }
    }
    requireFields(fields, 'new_email')
    const newEmail = fields['new_email'] ?? ''
    await ask.requestEmailChange({ newEmail })
    if (!waits) return { notice: 'change_sent' }
    awaitMail(entered, { email: newEmail, from: 'emailChange' })
    return { to: '/check-mail' }
  },
}

/** Null if the app's table has no column for the verification. */
export function isVerified({ store }: AuthContext, { emailVerifiedAt }: UserRecord): boolean | null {
  return store.users.fields.has('emailVerifiedAt') ? emailVerifiedAt !== null : null
}

interface EmailView {
  readonly email: string
  /** Null if the app does not know whether addresses are verified. */
  readonly isVerified: boolean | null
  readonly canChange: boolean
  readonly formOf: Part
}

function emailPage(reader: Reader, state: FormState, { email, isVerified, canChange, formOf }: EmailView): Html {
  const isAboutVerifying = state.values['action'] === 'verify'
  return html`${card(
    html`<h1>${reader.text('email.title')}</h1>
<p class="lead">${reader.text('email.current')} <strong>${email}</strong> ${verifiedTag(reader, isVerified)}</p>
`,
    isAboutVerifying ? problem(state) : null,
    isVerified === false ? verification(reader, formOf) : null,
  )}${canChange ? change(reader, isAboutVerifying ? { ...state, problem: null } : state, formOf) : null}`
}

export function verifiedTag(reader: Reader, isVerified: boolean | null): Part {
  if (isVerified === null) return null
  return html`<span class="tag${isVerified ? '' : ' open'}">${reader.text(isVerified ? 'email.verified' : 'email.not_verified')}</span>`
}

function verification(reader: Reader, formOf: Part): Html {
  return html`<p>${reader.text('email.unverified')}</p>
${form({ fields: [formOf, hidden('action', 'verify')], button: reader.text('email.verify_button'), look: 'second' })}`
}

function change(reader: Reader, state: FormState, formOf: Part): Html {
  return card(
    html`<h2>${reader.text('email.change_title')}</h2>
<p class="hint">${reader.text('email.change_lead')}</p>
`,
    problem(state),
    form({
      fields: [formOf, field(reader, state, { name: 'new_email', label: reader.text('email.new'), type: 'email', autocomplete: 'email' })],
      button: reader.text('email.change_button'),
    }),
  )
}
