𝐨pen
