import { hasPasswords } from '../../core/config/has-passwords'
import { hasPassword } from '../../passwords/unusable-password'
import type { AccountPage } from '../account-page'
import { FormFault, requireFields } from '../form-fault'
import { passwordRule } from '../password-rule'
import { passwordPage } from './password-page'

/** Changes the password. If the account has no password, sets the first password. */
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
