import Joi from 'joi'
import type { AuthContext } from '../context'
import { ValidationError } from '../errors'
import { routeBudget } from '../guards/route-budget'
import type { Route } from '../http/routes'
import { passwordText, validate } from '../http/validate'
import { linkPage } from '../pages/link-page'
import { activateOnly, lookAtActivation } from './activate'
import { lookAtReset, resetOnly } from './reset-password'

const passwords = Joi.object<{ new_password: string; confirm_password: string }>({
  new_password: passwordText().allow(''),
  confirm_password: passwordText().allow(''),
})

/** The page behind an activation link. It signs nobody in: a page can keep no token. */
export function activationPage(ctx: AuthContext): Route[] {
  return linkPage(ctx, {
    path: '/activate/:token',
    summary: 'Activate an account',
    sharesPath: true,
    before: [routeBudget(ctx, 'activate')],
    form: 'activate',
    done: 'activated',
    look: (token) => lookAtActivation(ctx, token),
    redeem: (token) => activateOnly(ctx, token),
  })
}

/** The page behind a reset link; signs nobody in either. */
export function resetPage(ctx: AuthContext): Route[] {
  return linkPage(ctx, {
    path: '/password-reset/:token',
    summary: 'Set a new password',
    fields: passwords,
    before: [routeBudget(ctx, 'password_reset_confirm')],
    form: 'password_reset',
    done: 'password_changed',
    look: (token) => lookAtReset(ctx, token),
    redeem: (token, fields, locale) => resetOnly(ctx, { token, newPassword: readPassword(fields), locale }),
  })
}

function readPassword(fields: unknown): string {
  const { new_password, confirm_password } = validate(passwords, fields)
  if (new_password !== confirm_password) throw new ValidationError({ details: { rule: 'mismatch' } })
  return new_password
}
