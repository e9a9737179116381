import { hasPasswords } from '../../core/config/every-setting'
import { card, type FormState, field, form, type Html, html, type Part, problem } from '../../http/html/document'
import type { Reader } from '../../http/html/reader'
import { hasPassword } from '../../passwords/verify-password'
import type { AccountPage } from '../account-page'
import { FormFault, passwordRule, requireFields } from '../form-fault'

export const password: AccountPage = {
  page: 'password',
  path: '/account/password',
  title: 'password.title',
  navigation: 'password.nav',
  passwordField: 'new_password',
  sentences: { UNAUTHORIZED: 'password.wrong' },
  faultFields: { UNAUTHORIZED: 'current_password' },
  isThere: ({ settings }) => hasPasswords(settings),
  needsFresh: ({ session }) => !hasPassword(session.user),
  show: ({ ctx, reader, session: { user }, formOf }, state) =>
    passwordPage(reader, state, { hasPassword: hasPassword(user), email: user.email, rule: passwordRule(ctx, reader), formOf }),
  async post({ ask, session }, fields) {
    const { current_password: currentPassword = '', new_password: newPassword = '', confirm_password: confirmed = '' } = fields
    const isFirst = !hasPassword(session.user)
    requireFields(fields, ...(isFirst ? [] : ['current_password']), 'new_password', 'confirm_password')
    if (newPassword !== confirmed) throw new FormFault({ confirm_password: 'password.mismatch' })
    if (isFirst) await ask.setFirstPassword({ newPassword })
    else await ask.changePassword({ currentPassword, newPassword })
    return { notice: isFirst ? 'password_set' : 'password_changed' }
  },
}

interface PasswordView {
  /** False if the account has no password yet. */
  readonly hasPassword: boolean
  /** Password managers store the address with the password. */
  readonly email: string
  /** Shown before the first try. */
  readonly rule: string
  readonly formOf: Part
}

function passwordPage(reader: Reader, state: FormState, { hasPassword, email, rule, formOf }: PasswordView): Html {
  return card(
    html`<h1>${reader.text(hasPassword ? 'password.title' : 'password.first_title')}</h1>
<p class="lead">${reader.text(hasPassword ? 'password.lead' : 'password.first_lead')}</p>
`,
    problem(state),
    form({
      fields: [
        formOf,
        html`<input type="text" name="username" value="${email}" autocomplete="username" hidden readonly>`,
        hasPassword
          ? field(reader, state, {
              name: 'current_password',
              label: reader.text('password.current'),
              type: 'password',
              autocomplete: 'current-password',
              isFirst: true,
            })
          : null,
        field(reader, state, {
          name: 'new_password',
          label: reader.text('password.new'),
          type: 'password',
          autocomplete: 'new-password',
          hint: rule,
          isFirst: !hasPassword,
        }),
        field(reader, state, {
          name: 'confirm_password',
          label: reader.text('password.confirm'),
          type: 'password',
          autocomplete: 'new-password',
        }),
      ],
      button: reader.text(hasPassword ? 'password.button' : 'password.first_button'),
    }),
  )
}
