import type { AuthContext } from '../context'

/**
 * Whether the confirmation of a login by email makes an account of an address that has none. Asks the host's `signup.admit`.
 * @throws what `admit` throws
 */
export async function maySignUp(ctx: AuthContext, email: string): Promise<boolean> {
  const { emailLoginSignup, signupEnabled } = ctx.settings
  return emailLoginSignup && signupEnabled && (await ctx.signup.admit?.({ email, name: null })) !== false
}
