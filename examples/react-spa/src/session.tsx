import { createAuthClient, type LoginResult } from 'doorward/client'
import { AuthProvider, RequireAuth } from 'doorward/react'
import type { ReactNode } from 'react'

export const auth = createAuthClient({ baseUrl: '/auth', delivery: 'cookie' })
export const readOrders = async () => (await auth.fetch('/api/orders')).json()
export const signOut = () => auth.logOut()

export const SignIn = ({ enter }: { enter: (login: Promise<LoginResult>) => void }) => (
  <form action={(form) => enter(auth.logIn({ email: String(form.get('email')), password: String(form.get('password')) }))}>
    <input name="email" aria-label="Email" type="email" autoComplete="username" required />
    <input name="password" aria-label="Password" type="password" autoComplete="current-password" required />
    <button type="submit">Sign in</button>
  </form>
)
export const Guarded = ({ children, fallback }: { children: ReactNode; fallback: ReactNode }) => (
  <AuthProvider client={auth}>
    <RequireAuth fallback={fallback}>{children}</RequireAuth>
  </AuthProvider>
)
