/**
 * Every operation of the router that has a method, by group: `name method path flags`. The method is the first letter of GET, POST and
 * DELETE, or A for PATCH. The flags are:
 * - `k`: there is a cookie route.
 * - `s`: opens, changes or ends a session. Runs under the lock, and the client asks whoami afterwards.
 * - `w`: changes the account, so the client asks whoami afterwards.
 * - `r`: the answer is login-shaped.
 * - `t`, `q`, `a`, `m`: takes `refresh_token` (delivery `bearer`), `request_token`, `signup_token`, `mfa_token`, which the client keeps.
 */
export const table = {
  '': `signUp P/signup ksr,activate P/activate ksra,requestActivation P/activation/request,logIn P/login ksr,logOut P/logout kst,\
reauthenticate P/reauthenticate ksrt,requestConfirmationCode P/reauthenticate/email kt,undo P/security/undo s`,
  account: `get G/me,update A/me tw,requestVerification P/email-verify/request t,verifyEmail P/email-verify/confirm tw,\
requestEmailChange P/email-change/request t,confirmEmailChange P/email-change/confirm kst`,
  password: `change P/password-change kst,changeWithFactor P/password-change/mfa kst,setFirst P/password/first kst,\
requestReset P/password-reset/request,reset P/password-reset/confirm ksrt`,
  emailLogin: `request P/email-login/request k,confirm P/email-login/confirm ksrtqa`,
  secondFactor: `verify P/mfa/verify ksrm,enroll P/mfa/enroll t,confirm P/mfa/confirm ksrt,disable P/mfa/disable st,\
recoveryCodes P/mfa/recovery-codes t`,
  passkeys: `list G/passkeys,register P/passkeys/register t,rename A/passkeys/:id t,remove D/passkeys/:id t,logIn P/passkeys/login ksr`,
  sessions: `list G/sessions,revoke D/sessions/:id s,revokeOthers P/sessions/revoke-others kst`,
  providers: `list G/oauth/accounts,link P/oauth/:provider/link t,unlink P/oauth/accounts/unlink t,redeemLink P/oauth/link/redeem kt,\
reauthenticate P/oauth/:provider/reauthenticate t,logInWithToken P/oauth/:provider/token sr,exchange P/oauth/exchange sr`,
} as const

export interface Operation {
  readonly group: string
  readonly name: string
  readonly method: string
  /** With `:name` for each parameter. */
  readonly path: string
  readonly flags: string
}

const methods: Readonly<Record<string, string>> = { G: 'GET', P: 'POST', A: 'PATCH', D: 'DELETE' }

export function operationsOf(lines: Readonly<Record<string, string>>): Operation[] {
  return Object.entries(lines).flatMap(([group, text]) =>
    text.split(',').map((line) => {
      const [name = '', route = '', flags = ''] = line.split(' ')
      return { group, name, method: methods[route.charAt(0)] ?? '', path: route.slice(1), flags }
    }),
  )
}

export type Body = Record<string, unknown>

/** Sends an operation and returns its answer. */
export type Call = (operation: Pick<Operation, 'method' | 'path' | 'flags'>, args: readonly unknown[]) => Promise<unknown>
