import type { AuthContext } from '../../context'

/**
 * Returns true if a confirmed login by email may create an account for an address without an account. Calls the host's `signup.admit`.
 * @throws the errors of `admit`
 */
export async function maySignUp(ctx: AuthContext, email: string): Promise<boolean> {
  const { emailLoginSignup, signupEnabled } = ctx.settings
  return emailLoginSignup && signupEnabled && (await ctx.signup.admit?.({ email, name: null })) !== false
}
