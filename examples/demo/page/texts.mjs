/** What the scripts say, in the language of the page; what stands in the pages themselves is in `views/`. */

export const english = {
  unexpected: 'Something went wrong. Please try again.',
  unreachable: 'The app does not answer. Is it still running?',
  theProvider: 'The provider',
  signedOut: 'You are not signed in any more. Please sign in again.',
  sessionEnded: 'You are not signed in any more: your password was changed, or the session came to its end.',
  wait: (seconds, until) => `That was a lot of attempts. Please wait ${seconds} seconds (until ${until}) and try again.`,

  // One sentence for a wrong password, an unknown address and an account that waits for its activation: the app does not say which.
  notLoggedIn: 'That email and password do not open an account. Signed up just now? Then open the link in your mail first.',
  activated: 'Your account is active, and you are signed in.',
  reset: 'Your new password is set, and you are signed in. Every other browser is signed out.',
  resetChallenged: 'Your new password is set, and every browser is signed out. Now the code.',
  sentAgain: 'Sent again. Only the newest link works.',
  newActivationLink: 'If an account with this address waits for its activation, a new link is on its way.',

  mailedLink: 'By a mailed link',
  linked: (instant) => `Linked ${instant}`,
  link: (provider) => `Link ${provider}`,
  confirmed: (instant) => `is yours: confirmed ${instant}.`,
  unconfirmed: 'is not confirmed yet.',
  notYourPassword: 'This is not your current password.',
  passwordChanged: 'Your password is changed. This browser stays signed in; every other one is signed out within a minute.',

  wrongCode: 'This code is not right, or it was used already. Wait for the next one.',
  challengeOver: 'That took too long. Please sign in again.',
  qrCode: 'QR code of the key below',
  copied: 'Copied. Put them somewhere safe.',
  notCopied: 'Your browser does not let this page copy. Please write them down.',
  protected: 'Your account is protected. This browser stays signed in; every other one is signed out within a minute.',
  unprotected: 'The protection is off. Signing in takes no code any more, and the recovery codes are gone.',
  newCodes: 'Only the new recovery codes work from now on.',
  changedElsewhere: 'This was changed in another window meanwhile.',

  password: {
    too_short: (min) => `That is too short: use at least ${min} characters. A few words in a row are easy to remember.`,
    missing_classes: (classes) => `Add ${classes.join(' and ')}.`,
    too_long: 'That is too long. Please use a shorter one.',
    too_common: 'That is easy to guess: a common password, a repetition, or your own name or address. Please choose another one.',
    malformed: 'There is a broken character in it. Please type it again.',
    other: 'This password cannot be used. Please choose another one.',
  },
  classes: { lower: 'a small letter', upper: 'a capital letter', digit: 'a digit', special: 'a sign such as ! or ?' },

  fields: {
    email: 'This does not look like an email address.',
    new_email: 'This does not look like an email address.',
    name: 'Please use at most 120 characters.',
    other: 'This cannot be used.',
  },
  sameAddress: 'This is your address already.',

  codes: (provider) => ({
    OAUTH_PROVIDER_DENIED: `You chose not to share your ${provider} account, so nothing has changed. You can try again whenever you like.`,
    OAUTH_STATE_MISMATCH: 'That took too long or was started somewhere else. Please start again.',
    OAUTH_ACCOUNT_INACTIVE: 'This account is not active. Signed up here just now? Then open the link in your mail first.',
    OAUTH_EMAIL_MISSING: `${provider} did not share an email address, and a new account here needs one. Sign in another way first, then link ${provider}.`,
    OAUTH_EMAIL_TAKEN: 'There is already an account with this email address.',
    OAUTH_EMAIL_UNVERIFIED: `There is already an account with this email address, and ${provider} does not say that the address is yours. Sign in as you did before, then link ${provider}.`,
    OAUTH_IDENTITY_TAKEN: `That ${provider} account is linked to another account here. Unlink it there first, or choose another one.`,
    OAUTH_PROVIDER_ALREADY_LINKED: `You have already linked an ${provider} account. Unlink it first to link another one.`,
    OAUTH_REGISTRATION_DISABLED: 'This app is not taking new accounts right now.',
    OAUTH_ERROR: `${provider} did not finish. Please try again.`,
    OAUTH_PROVIDER_UNAVAILABLE: `${provider} cannot be reached right now. Please try again in a moment.`,
    MFA_ALREADY_ENROLLED: english.changedElsewhere,
    MFA_NOT_ENROLLED: english.changedElsewhere,
    INVALID_TOKEN: 'This link has been used already, or it is too old.',
    TOO_MANY_REQUESTS: 'That was a lot of attempts. Please wait a minute and try again.',
    SERVICE_UNAVAILABLE: 'The app is busy. Please try again in a moment.',
  }),
}

export const portuguese = {
  unexpected: 'Algo deu errado. Tente de novo.',
  unreachable: 'O aplicativo não responde. Ele ainda está rodando?',
  theProvider: 'provedor',
  signedOut: 'Sua sessão terminou. Entre de novo.',
  sessionEnded: 'Sua sessão terminou: a senha foi alterada ou o prazo da sessão chegou ao fim.',
  wait: (seconds, until) => `Foram muitas tentativas. Aguarde ${seconds} segundos (até ${until}) e tente de novo.`,

  notLoggedIn: 'Este e-mail e esta senha não abrem nenhuma conta. Acabou de se cadastrar? Então abra primeiro o link que enviamos.',
  activated: 'Sua conta está ativa, e você já entrou.',
  reset: 'Sua nova senha está valendo, e você já entrou. As sessões em outros navegadores foram encerradas.',
  resetChallenged: 'Sua nova senha está valendo, e todas as sessões foram encerradas. Agora, o código.',
  sentAgain: 'Enviado de novo. Só o link mais novo funciona.',
  newActivationLink: 'Se houver uma conta com este endereço à espera de ativação, um novo link está a caminho.',

  mailedLink: 'Por um link enviado por e-mail',
  linked: (instant) => `Vinculada em ${instant}`,
  link: (provider) => `Vincular ${provider}`,
  confirmed: (instant) => `é seu: confirmado em ${instant}.`,
  unconfirmed: 'ainda não foi confirmado.',
  notYourPassword: 'Esta não é a sua senha atual.',
  passwordChanged: 'Sua senha foi alterada. Este navegador continua conectado; todos os outros serão desconectados em até um minuto.',

  wrongCode: 'Este código não confere ou já foi usado. Aguarde o próximo.',
  challengeOver: 'Demorou demais. Entre de novo.',
  qrCode: 'Código QR da chave abaixo',
  copied: 'Copiados. Guarde-os em um lugar seguro.',
  notCopied: 'Seu navegador não deixa esta página copiar. Anote os códigos.',
  protected: 'Sua conta está protegida. Este navegador continua conectado; todos os outros serão desconectados em até um minuto.',
  unprotected: 'A proteção foi desativada. Para entrar não é mais preciso um código, e os códigos de recuperação foram apagados.',
  newCodes: 'A partir de agora, só os novos códigos de recuperação funcionam.',
  changedElsewhere: 'Isso foi alterado em outra janela nesse meio-tempo.',

  password: {
    too_short: (min) => `É curta demais: use pelo menos ${min} caracteres. Algumas palavras em sequência são fáceis de lembrar.`,
    missing_classes: (classes) => `Acrescente ${classes.join(' e ')}.`,
    too_long: 'É longa demais. Use uma mais curta.',
    too_common: 'É fácil de adivinhar: uma senha comum, uma repetição ou seu próprio nome ou endereço. Escolha outra.',
    malformed: 'Há um caractere inválido nela. Digite-a de novo.',
    other: 'Esta senha não pode ser usada. Escolha outra.',
  },
  classes: { lower: 'uma letra minúscula', upper: 'uma letra maiúscula', digit: 'um número', special: 'um sinal como ! ou ?' },

  fields: {
    email: 'Isto não parece um endereço de e-mail.',
    new_email: 'Isto não parece um endereço de e-mail.',
    name: 'Use no máximo 120 caracteres.',
    other: 'Isto não pode ser usado.',
  },
  sameAddress: 'Este já é o seu endereço.',

  codes: (provider) => ({
    OAUTH_PROVIDER_DENIED: `Você preferiu não compartilhar sua conta do ${provider}, e nada foi alterado. Tente de novo quando quiser.`,
    OAUTH_STATE_MISMATCH: 'Isso demorou demais ou foi iniciado em outro lugar. Comece de novo.',
    OAUTH_ACCOUNT_INACTIVE: 'Esta conta não está ativa. Acabou de se cadastrar? Então abra primeiro o link que enviamos.',
    OAUTH_EMAIL_MISSING: `O ${provider} não informou um endereço de e-mail, e uma conta nova precisa de um. Entre primeiro de outro jeito e depois vincule o ${provider}.`,
    OAUTH_EMAIL_TAKEN: 'Já existe uma conta com este endereço de e-mail.',
    OAUTH_EMAIL_UNVERIFIED: `Já existe uma conta com este endereço de e-mail, e o ${provider} não garante que o endereço é seu. Entre como antes e depois vincule o ${provider}.`,
    OAUTH_IDENTITY_TAKEN: `Essa conta do ${provider} está vinculada a outra conta daqui. Desvincule-a de lá primeiro ou escolha outra.`,
    OAUTH_PROVIDER_ALREADY_LINKED: `Você já vinculou uma conta do ${provider}. Desvincule-a antes de vincular outra.`,
    OAUTH_REGISTRATION_DISABLED: 'Este aplicativo não está aceitando contas novas no momento.',
    OAUTH_ERROR: `O ${provider} não concluiu o processo. Tente de novo.`,
    OAUTH_PROVIDER_UNAVAILABLE: `Não foi possível falar com o ${provider}. Tente de novo daqui a pouco.`,
    MFA_ALREADY_ENROLLED: portuguese.changedElsewhere,
    MFA_NOT_ENROLLED: portuguese.changedElsewhere,
    INVALID_TOKEN: 'Este link já foi usado ou é antigo demais.',
    TOO_MANY_REQUESTS: 'Foram muitas tentativas. Aguarde um minuto e tente de novo.',
    SERVICE_UNAVAILABLE: 'O aplicativo está ocupado. Tente de novo daqui a pouco.',
  }),
}

export const language = document.documentElement.lang
export const texts = language === 'pt-BR' ? portuguese : english
