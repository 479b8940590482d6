"""Study of FedFW's tables with the rows and the loop of its authors."""
