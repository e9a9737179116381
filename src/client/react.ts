import { createContext, createElement, type ReactElement, type ReactNode, useContext, useMemo, useSyncExternalStore } from 'react'
import type { AuthClient, AuthState, User } from './client.js'

interface Shared {
  readonly client: AuthClient
  /** What the server rendered. */
  readonly first: AuthState
}

const Auth = createContext<Shared | null>(null)

export interface AuthProviderProps {
  readonly client: AuthClient
  /** For a page that the server rendered: the person, or null for signed out. Without it, the server renders `loading`. */
  readonly initialUser?: User | null | undefined
  readonly children?: ReactNode
}

export function AuthProvider({ client, initialUser, children }: AuthProviderProps): ReactElement {
  const shared = useMemo(() => ({ client, first: firstState(initialUser) }), [client, initialUser])
  return createElement(Auth.Provider, { value: shared }, children)
}

function firstState(user: User | null | undefined): AuthState {
  if (user === undefined) return { status: 'loading', user: null }
  return { status: user ? 'signed-in' : 'signed-out', user }
}

export interface UseAuth extends AuthState {
  readonly auth: AuthClient
}

/**
 * Returns the state of the session and the client.
 * @throws Error outside of an AuthProvider
 */
export function useAuth(): UseAuth {
  const shared = useContext(Auth)
  if (!shared) throw new Error('useAuth() needs an <AuthProvider client={…}> above it.')
  const { client, first } = shared
  // Until the client knows, the page shows what the server rendered.
  const read = () => (client.state.status === 'loading' ? first : client.state)
  const state = useSyncExternalStore(client.subscribe, read, () => first)
  return { ...state, auth: client }
}

/** Returns the signed-in person, else null. */
export function useUser(): User | null {
  return useAuth().user
}

interface Shown {
  readonly children?: ReactNode
  /** Shown until the router has answered. Default: nothing. */
  readonly loading?: ReactNode
}

export function SignedIn({ children, loading }: Shown): ReactNode {
  return useShown({ children, loading }, 'signed-in', null)
}

export function SignedOut({ children, loading }: Shown): ReactNode {
  return useShown({ children, loading }, 'signed-out', null)
}

/** Shows `fallback`, such as a sign-in form, to a signed-out person. */
export function RequireAuth({ children, loading, fallback }: Shown & { readonly fallback?: ReactNode }): ReactNode {
  return useShown({ children, loading }, 'signed-in', fallback)
}

/** Shared by the three components. */
function useShown({ children, loading }: Shown, wanted: AuthState['status'], otherwise: ReactNode): ReactNode {
  const { status } = useAuth()
  if (status === 'loading') return loading ?? null
  return (status === wanted ? children : otherwise) ?? null
}
