/**
 * Every operation of the router that has a method, by group: `name route flags`, or the name alone. A page needs the routes here to sign
 * people up, in and out. The others are in routes.ts, which is loaded at the first call of one of them: here an operation costs every page
 * ten bytes, there four. A route begins with its method; without it, POST. The flags are:
 * - `k`: there is a cookie route.
 * - `s`: changes a session or the person. Runs under the lock, and the client asks whoami afterwards.
 * - `r`: the answer is login-shaped, which is `s` too; `o`: a logout. `p`: for the person who is signed in, although login-shaped.
 * - `t`, `q`, `a`, `m`, `x`: takes `refresh_token` (delivery `bearer`), `request_token` (`bearer`), `signup_token`, `mfa_token`, `task_token`,
 *   which the client keeps.
 * - `w`: an authenticator answers (passkeys.ts). `g`: what authenticators show of the person may have changed, as after a login.
 */
export const table = {
  '': `signUp /signup kr,activate /activate kraq,requestActivation /activation/request,logIn /login kr,logOut /logout ktos,\
reauthenticate /reauthenticate krtp,requestConfirmationCode,undo`,
  account: 'get GET/me,update,requestVerification,verifyEmail,requestEmailChange,confirmEmailChange,delete,restore,export',
  password: 'change,changeWithFactor,setFirst,requestReset /password-reset/request,reset /password-reset/confirm krtq',
  emailLogin: 'request /email-login/request k,confirm /email-login/confirm krtqa',
  secondFactor: 'verify /mfa/verify krm,enroll,confirm,disable,recoveryCodes',
  passkeys: 'list,register,rename,remove,logIn,signUp',
  sessions: 'list,revoke,revokeOthers',
  providers: 'list,link,unlink,redeemLink,reauthenticate,logInWithToken,exchange',
  tasks: 'device,resend,newPassword,enroll,confirm,complete',
  trustedDevices: 'list,remove',
  invitations: 'redeem',
} as const

/** @param lines the operations of one group. Returns the name and the rest of each, behind their whole text */
export function operationsOf(lines: string): string[][] {
  return [...lines.matchAll(/(\w+) ?([^,]*)/g)]
}

export type Body = Record<string, unknown>

/** Sends an operation and returns its answer. @param line `route flags` of the table, or `group.name` of an operation in routes.ts */
export type Call = (line: string, args: readonly unknown[]) => Promise<unknown>
