import { isImmediate } from '../../accounts/deletion/delete-account'
import type { AuthContext } from '../../context'
import { card, checkbox, type FormState, form, type Html, html, linkButton, problem } from '../../http/html/document'
import type { Reader } from '../../http/html/reader'
import type { AccountPage, Farewell } from '../account-page'
import { FormFault } from '../form-fault'
import { messagePage } from '../message-page'
import { signInAddress } from '../signed-in'

/** The button works only after the person has ticked the box, also without a script. */
export const deleteAccount: AccountPage = {
  page: 'deleteAccount',
  path: '/account/delete',
  title: 'deletion.title',
  sharesPath: true,
  needsFresh: true,
  sentences: { CONFLICT: 'deletion.refused' },
  isThere: ({ settings }) => settings.accountDeletion !== 'off',
  show({ ctx, reader, person, session, formOf }, state) {
    const at = isImmediate(ctx, session.user) ? null : dateIn(ctx, reader, ctx.settings.accountDeletionDays)
    return deletePage(reader, state, { email: person.email, formOf, at })
  },
  async post({ ctx, ask, reader }, { understood }) {
    if (understood !== 'on') throw new FormFault({ form: 'deletion.not_understood' })
    const { deletesAt } = await ask.deleteAccount()
    return farewell(reader, deletesAt && dateOf(reader, deletesAt), signInAddress(ctx, reader))
  },
}

function dateIn({ now }: AuthContext, reader: Reader, days: number): string {
  return dateOf(reader, new Date(now().getTime() + days * 86_400_000))
}

function dateOf({ lang }: Reader, at: Date): string {
  return new Intl.DateTimeFormat(lang, { dateStyle: 'long', timeZone: 'UTC' }).format(at)
}

function farewell(reader: Reader, date: string | null, signIn: string): Farewell {
  const title = reader.text(date === null ? 'deletion.gone.title' : 'deletion.closed.title')
  const lead = date === null ? reader.text('deletion.gone.lead') : reader.text('deletion.closed.lead', { date })
  const go = { href: signIn, label: reader.text('signed_out.again') }
  return { farewell: { page: 'deleteAccount', title, body: messagePage({ title, lead, ...(date !== null && { go }) }) } }
}

interface View {
  readonly email: string
  readonly formOf: Html | null
  /** When the account is deleted. Null: at once. */
  readonly at: string | null
}

function deletePage(reader: Reader, state: FormState, { email, formOf, at }: View): Html {
  return card(
    html`<h1>${reader.text('deletion.title')}</h1>
<p class="lead">${reader.text('deletion.lead', { email })}</p>
`,
    html`<p>${at === null ? reader.text('deletion.immediate') : reader.text('deletion.soft', { date: at })}</p>
<p>${reader.text('deletion.export_lead')}</p>
`,
    linkButton(reader.href('/account/export'), reader.text('deletion.export'), 'second'),
    problem(state),
    form({
      action: reader.href('/account/delete'),
      fields: [formOf, checkbox(state, { name: 'understood', label: reader.text('deletion.understood'), isChecked: false })],
      button: reader.text('deletion.button'),
      look: 'danger',
    }),
    html`<p class="below"><a href="${reader.href('/account')}">${reader.text('deletion.keep')}</a></p>
`,
  )
}
